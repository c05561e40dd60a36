// SPDX-License-Identifier: GPL-3.0-or-later
/* The prompt: readline's callback interface on the event loop, or plain lines when stdin is not a
 * terminal. Reports that arrive while a line is being typed are printed above it. */
#include "repl/line/line.h"
#include "repl/core/interrupt.h"
#include "repl/core/parse.h"
#include "repl/core/repl_impl.h"
#include "repl/line/line_moves.h"
#include "repl/out/tty.h"
#include "repl/out/tty_out.h"
#include "repl/request/request.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

#define MOST_AHEAD ((size_t)1 << 16) /* bytes typed ahead */

struct line {
    struct repl *repl;
    bool terminal;
    bool at_prompt; /* readline shows the prompt */
    bool ended;     /* end of input */
    bool executing; /* a typed line runs */
    bool left;      /* the prompt ends, the session continues */
    bool held;      /* keys wait until the terminal has taken earlier output */
    ev_io input;
    ev_signal winch;
    ev_signal cont;
    ev_signal suspend;
    struct gd_buf pending; /* bytes from a pipe, not a complete line yet */
    struct gd_buf ahead;   /* typed without a prompt: the answer to a question, or more */
    /* paging */
    int rows_printed; /* since the command began */
    bool paging;      /* the question is on the screen */
    bool page_all;    /* c: no more questions for this command */
    bool page_none;   /* q: the rest of this command's output is dropped */
};

/* readline keeps its state in globals, and its callbacks have no context. */
static struct line *active;

/* ---- completion ---- */

static int screen_rows(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 4) {
        return 24;
    }
    return size.ws_row;
}

static char **complete_word(const char *text, int start, int end)
{
    (void)text;
    return active ? line_complete(active->repl, start, end) : NULL;
}

static void write_matches(void *ctx, const char *row)
{
    (void)ctx;
    fprintf(rl_outstream, "%s\n", row);
}

/* At most a screenful, without readline's question: it would block while the training process
 * waits. */
static void show_matches(char **matches, int count, int longest)
{
    (void)longest;
    int width = out_width(&(struct repl_out){.repl = active->repl});

    fputc('\n', rl_outstream);
    line_match_rows(matches, count, width, screen_rows() - 3, write_matches, NULL);
    rl_forced_update_display();
}

/* ---- output ---- */

static void take_width(struct line *line)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        repl_set_width(line->repl, size.ws_col);
    }
}

static bool may_page(const struct line *line)
{
    return line->terminal && line->repl->busy.depth > 0 && !line->paging && !line->page_all &&
           line->repl->debugger->settings.pagination && isatty(STDOUT_FILENO) &&
           !line->repl->busy.pumping;
}

/* Asks and waits for a line from the terminal, running the loop. NULL: Ctrl-C or end of input. That
 * end of input (C-d) belongs to the answer, not to the next prompt. */
static char *read_answer(struct line *line, const char *question, bool *ended)
{
    char *answer;

    line->ended = false;
    ev_io_start(line->repl->loop, &line->input);
    bool was_waiting = line->repl->busy.waiting;
    line->repl->busy.waiting = true;
    void (*pause)(void *, bool) = line->repl->front.pause_input;
    line->repl->front.pause_input = NULL;
    line_redraw_key(true); /* before an answer can be typed */
    tty_out_puts(STDOUT_FILENO, question);
    while (!(answer = line_take(&line->ahead, LINE_REDRAW "\n")) && !line->ended &&
           !repl_is_interrupted(line->repl)) {
        repl_pump(line->repl, -1);
    }
    line_redraw_key(false);
    line->repl->front.pause_input = pause;
    line->repl->busy.waiting = was_waiting;
    repl_clear_interrupt(line->repl);
    *ended = line->ended;
    line->ended = false;
    return answer;
}

static void ask_for_more(struct line *line)
{
    static const char question[] = "-- Enter: more, q: quit, c: continue without paging --";
    bool ended;
    char *answer = NULL;

    line->paging = true;
    do {
        tty_out_puts(STDOUT_FILENO, answer ? "\n" : "");
        free(answer);
        answer = read_answer(line, question, &ended);
    } while (answer && strstr(answer, LINE_REDRAW));
    line->paging = false;
    line->rows_printed = 0;
    line->page_none = !answer || answer[0] == 'q';
    line->page_all = answer && answer[0] == 'c';
    if (!answer) {
        tty_out_puts(STDOUT_FILENO, "\n");
    }
    free(answer);
}

/* Pauses after each screenful. */
static void write_paged(struct line *line, const char *text, size_t len)
{
    int width = out_width(&(struct repl_out){.repl = line->repl});
    size_t begin = 0;

    for (size_t i = 0; i < len && !line->page_none; i++) {
        if (text[i] != '\n') {
            continue;
        }
        line->rows_printed += 1 + (int)((i - begin) / (size_t)(width > 0 ? width : 80));
        tty_out_write(STDOUT_FILENO, text + begin, i + 1 - begin);
        begin = i + 1;
        if (line->rows_printed >= screen_rows() - 1 && may_page(line)) {
            ask_for_more(line);
        }
    }
    if (!line->page_none && begin < len) {
        tty_out_write(STDOUT_FILENO, text + begin, len - begin);
    }
}

static void line_write(void *ctx, const char *text, size_t len, bool is_error)
{
    struct line *line = ctx;
    int fd = is_error ? STDERR_FILENO : STDOUT_FILENO;

    if (line->at_prompt) {
        rl_clear_visible_line();
        fflush(rl_outstream);
    }
    fflush(stdout);
    if (!is_error && may_page(line)) {
        write_paged(line, text, len);
    } else if (is_error || !line->page_none || line->repl->busy.pumping) {
        tty_out_write(fd, text, len);
    }
    if (line->at_prompt) {
        rl_on_new_line();
        rl_redisplay();
    }
}

/* A line typed before an unsolicited question appeared must not answer it. */
static bool take_command(struct line *line, char *text)
{
    size_t len = strlen(text);

    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t')) {
        text[--len] = '\0';
    }
    bool command = line->repl->front.ask_unprompted && text[strspn(text, " \t")] != '\0';
    bool yes;
    if (!command || parse_answer(text + strspn(text, " \t"), true, &yes)) {
        return false;
    }
    struct gd_buf whole = GD_BUF_INIT(MOST_AHEAD);
    gd_buf_printf(&whole, "%s\n", text);
    gd_buf_add(&whole, line->ahead.data, line->ahead.len);
    gd_buf_deinit(&line->ahead);
    line->ahead = whole;
    free(text);
    tty_out_puts(STDOUT_FILENO, "Not an answer but a command: assumed n.\n");
    return true;
}

static bool line_ask(void *ctx, const char *question)
{
    struct line *line = ctx;

    for (;;) {
        tty_out_puts(STDOUT_FILENO, question);
        bool yes; /* as in gdb, the end of input means yes */
        char *answer = read_answer(line, " (y or n) ", &yes);
        if (!answer) {
            yes = yes && !line->repl->front.ask_consent;
            tty_out_puts(STDOUT_FILENO, yes ? "[assumed y]\n" : "\n");
            return yes;
        }
        bool again = line_answer_redraws(answer);
        if (!again && take_command(line, answer)) {
            return false;
        }
        bool answered = !again && parse_answer(answer + strspn(answer, " \t"), false, &yes);
        free(answer);
        if (answered) {
            return yes;
        }
        tty_out_puts(STDOUT_FILENO, again ? "" : "Please answer y or n.\n");
    }
}

/* ---- the terminal ---- */

void line_put_away(void)
{
    rl_callback_sigcleanup();
    line_search_end(false);
    line_moves_forget();
    rl_initialize(); /* an empty line at the end of the history */
    rl_free_undo_list();
    rl_callback_handler_remove();
}

/* C-s and C-q are keys at the prompt; they stop the terminal only during a command's output. Taken
 * first, because a stopped terminal would block readline. */
static bool took_flow;

static void prepare_terminal(int meta)
{
    took_flow = took_flow || tty_flow_take(STDIN_FILENO);
    rl_prep_terminal(meta);
}

static void restore_terminal(void)
{
    rl_deprep_terminal();
    if (took_flow) {
        tty_flow_give(STDIN_FILENO);
    }
    took_flow = false;
}

/* A terminal that was lost with the prompt on it cannot be restored, and readline would restore the
 * next one instead, which needs no restoring. */
static void forget_terminal(void)
{
    struct termios now;

    took_flow = false;
    if (RL_ISSTATE(RL_STATE_TERMPREPPED) && tcgetattr(STDIN_FILENO, &now) == 0) {
        rl_deprep_terminal();
        tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
}

/* The prompt ends, with or without the session. */
static bool is_over(const struct line *line)
{
    return line->repl->end.quit || line->left || line->repl->front.left;
}

static void on_line(char *text);

static void show_prompt(struct line *line)
{
    rl_callback_handler_install(repl_prompt(line->repl), on_line);
    line->at_prompt = true;
    if (line->ahead.len > 0) { /* the start of a line */
        rl_insert_text(gd_buf_text(&line->ahead));
        rl_redisplay();
        gd_buf_clear(&line->ahead);
    }
}

static void hide_prompt(struct line *line)
{
    if (line->at_prompt) {
        line_put_away();
        line->at_prompt = false;
    }
}

static void execute_line(struct line *line, const char *text)
{
    line->rows_printed = 0;
    line->page_all = false;
    line->page_none = false;
    line_remember(line->repl, text);
    ev_io_stop(line->repl->loop, &line->input);
    line->executing = true;
    repl_tell_typed(line->repl, text);
    repl_request_run(line->repl, text);
    line->executing = false;
    if (!line->ended && !line->repl->end.quit && !line->repl->front.left) {
        ev_io_start(line->repl->loop, &line->input);
    }
}

/* Runs a line that readline did not show. */
static void execute_shown(struct line *line, const char *text)
{
    tty_out_puts(STDOUT_FILENO, repl_prompt(line->repl));
    tty_out_puts(STDOUT_FILENO, text);
    tty_out_puts(STDOUT_FILENO, "\n");
    execute_line(line, text);
}

/* Runs what was typed before a question that it does not answer. */
static void execute_ahead(struct line *line)
{
    char *text;

    while (!is_over(line) && (text = line_take(&line->ahead, "\n"))) {
        execute_shown(line, text);
        free(text);
    }
}

/* Several lines were pasted: shows each at the prompt before it runs. */
static void execute_lines(struct line *line, char *text)
{
    char *rest = text;
    bool first = true;

    for (char *one = strsep(&rest, "\n"); one; one = strsep(&rest, "\n")) {
        if (is_over(line)) {
            return;
        }
        (first ? execute_line : execute_shown)(line, one);
        first = false;
        execute_ahead(line);
    }
}

/* End of input: as in gdb, on its own line, with the question of `quit`. */
static void end_of_input(struct line *line)
{
    struct termios state;

    if (line->repl->front.left) {
        return;
    }
    if (line->terminal && repl_is_resident(line->repl) && tcgetattr(STDIN_FILENO, &state) != 0) {
        raise(SIGHUP); /* nobody typed that end */
    } else if (line->terminal && repl_interact_ends(line->repl)) {
        tty_out_puts(STDOUT_FILENO, "\n");
    } else if (line->terminal) {
        tty_out_puts(STDOUT_FILENO, "quit\n");
        repl_execute(line->repl, "quit");
    } else {
        repl_quit(line->repl, STATUS_OK);
    }
}

static void prompt_again(struct line *line)
{
    if (is_over(line)) {
        ev_break(line->repl->loop, EVBREAK_ALL);
    } else {
        show_prompt(line);
    }
}

static void on_line(char *text)
{
    struct line *line = active;

    hide_prompt(line);
    if (!text) {
        end_of_input(line);
    } else {
        execute_lines(line, text);
    }
    free(text);
    prompt_again(line);
}

/* Reads in canonical mode: the answer to a question. Input typed at the prompt may be several
 * lines. */
static void read_plain(struct line *line)
{
    char bytes[4096];
    ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));

    if (got <= 0) {
        line->ended = got == 0 || (errno != EINTR && errno != EAGAIN);
        return;
    }
    for (ssize_t i = 0; i < got; i++) {
        bytes[i] = bytes[i] == '\r' ? '\n' : bytes[i] == '\0' ? ' ' : bytes[i];
    }
    if (gd_buf_add(&line->ahead, bytes, (size_t)got) != GD_OK) {
        gd_buf_clear(&line->ahead); /* not typed */
    }
}

/* ---- the terminal's events ---- */

static void on_terminal(struct ev_loop *loop, ev_io *io, int events)
{
    struct line *line = io->data;

    (void)events;
    if (tty_look(STDIN_FILENO) == TTY_NOTHING) {
        return; /* Ctrl-C discarded the input: readline would block */
    }
    if (line->at_prompt && tty_out_waiting() > 0) {
        line->held = true;
        ev_io_stop(loop, io);
        return; /* readline rings the bell itself, and would block */
    }
    if (line->at_prompt && line_is_pasting()) {
        line_paste_read();
    } else if (line->at_prompt) {
        rl_callback_read_char();
    } else {
        read_plain(line);
    }
}

/* The terminal has taken all output. */
static void on_empty(void *ctx)
{
    struct line *line = ctx;

    if (line->held && !line->repl->busy.pumping) { /* otherwise the end of repl_pump does it */
        ev_io_start(line->repl->loop, &line->input);
    }
    line->held = false;
}

static void on_winch(struct ev_loop *loop, ev_signal *signal, int events)
{
    struct line *line = signal->data;

    (void)loop;
    (void)events;
    take_width(line);
    if (line->at_prompt) {
        rl_resize_terminal();
    }
}

static void on_cont(struct ev_loop *loop, ev_signal *signal, int events)
{
    struct line *line = signal->data;

    (void)loop;
    (void)events;
    take_width(line);
    if (line->at_prompt) { /* the shell used the terminal meanwhile */
        restore_terminal();
        prepare_terminal(1);
        rl_resize_terminal();
        rl_forced_update_display();
    }
}

/* Ctrl-Z: restores the terminal for the shell. */
static void on_suspend(struct ev_loop *loop, ev_signal *watcher, int events)
{
    struct line *line = watcher->data;

    (void)events;
    ev_signal_stop(loop, watcher); /* restores the signal's default action */
    if (line->at_prompt) {
        restore_terminal();
    }
    raise(SIGTSTP); /* continues in on_cont */
    ev_signal_start(loop, watcher);
}

void line_interrupt(struct repl *repl)
{
    struct line *line = active;

    if (!line || !line->terminal || !line->at_prompt) {
        return;
    }
    line_paste_stop();
    hide_prompt(line);
    tty_out_puts(STDOUT_FILENO, "^C\n");
    repl_body_interrupt(repl);
    show_prompt(line);
}

static bool is_idle(const struct repl *repl)
{
    return active && active->repl == repl && active->terminal && active->at_prompt &&
           !active->executing && !line_is_pasting() && rl_end == 0 && active->ahead.len == 0 &&
           repl->script.body.kind == BODY_NONE;
}

static void offer_at_prompt(struct repl *repl)
{
    struct line *line = active;

    if (repl_offers(repl) == 0) {
        return;
    }
    rl_clear_visible_line();
    fflush(rl_outstream);
    hide_prompt(line);
    repl_offer_at_prompt(repl);
    execute_ahead(line);
    prompt_again(line);
}

void line_leave(struct repl *repl)
{
    if (active && active->repl == repl) {
        active->left = true;
    }
}

/* ---- a pipe or a file ---- */

/* An empty line of a file must not repeat a command. */
static bool is_to_run(const struct line *line, const char *text)
{
    return text &&
           (text[strspn(text, " \t\r")] != '\0' || line->repl->script.body.kind != BODY_NONE);
}

static void run_pending(struct line *line)
{
    while (!line->repl->end.quit && line->pending.len > 0) {
        char *end = memchr(line->pending.data, '\n', line->pending.len);
        if (!end) {
            if (!line->ended) {
                return;
            }
            end = line->pending.data + line->pending.len;
        }
        size_t len = (size_t)(end - line->pending.data);
        size_t used = len < line->pending.len ? len + 1 : len;
        bool nul = memchr(line->pending.data, '\0', len) != NULL;
        char *text = strndup(line->pending.data, len);
        memmove(line->pending.data, line->pending.data + used, line->pending.len - used);
        line->pending.len -= used;
        if (nul) { /* the rest of the line would be lost silently */
            struct gd_err err;
            gd_fail(&err, GD_EINVAL, "the line contains a NUL byte and is skipped");
            repl_print_error(line->repl, NULL, NULL, &err);
        } else if (is_to_run(line, text)) {
            execute_line(line, text);
        }
        free(text);
    }
}

static void on_pipe(struct ev_loop *loop, ev_io *io, int events)
{
    struct line *line = io->data;
    char bytes[16384];
    ssize_t got = read(STDIN_FILENO, bytes, sizeof(bytes));

    (void)events;
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        line->ended = true;
        ev_io_stop(loop, io);
    } else if (gd_buf_add(&line->pending, bytes, (size_t)got) != GD_OK) {
        tty_out_puts(STDERR_FILENO, "error: an input line is too long\n");
        line->ended = true;
        gd_buf_clear(&line->pending);
        ev_io_stop(loop, io);
    }
    run_pending(line);
    if (line->ended && !line->repl->end.quit) {
        end_of_input(line);
    }
    if (line->repl->end.quit) {
        ev_break(loop, EVBREAK_ALL);
    }
}

static void pause_input(void *ctx, bool pause)
{
    struct line *line = ctx;

    if (pause) {
        ev_io_stop(line->repl->loop, &line->input);
    } else if (!line->executing && !line->ended) {
        ev_io_start(line->repl->loop, &line->input);
    }
}

/* ---- the whole ---- */

/* C-x a, as in gdb: the caller of the prompt opens the panes. */
static int panes_key(int count, int key)
{
    (void)count;
    (void)key;
    if (active) {
        line_leave(active->repl);
    }
    return 0;
}

static void start_terminal(struct line *line)
{
    struct repl *repl = line->repl;

    forget_terminal();
    rl_readline_name = "gradb";
    rl_catch_signals = 0;
    rl_outstream = tty_out_file();
    rl_prep_term_function = prepare_terminal;
    rl_deprep_term_function = restore_terminal;
    tty_out_when_empty(on_empty, line);
    rl_attempted_completion_function = complete_word;
    rl_completion_display_matches_hook = show_matches;
    rl_completion_query_items = -1;
    rl_basic_word_break_characters = " \t\n";
    rl_completer_quote_characters = "";
    line_keys_take();
    rl_redisplay_function = line_redisplay; /* not earlier, or readline ignores bracketed paste */
    rl_bind_keyseq("\\C-xa", panes_key);
    rl_bind_keyseq("\\C-x\\C-a", panes_key);
    line_history_load(repl);
    take_width(line);
    ev_signal_init(&line->winch, on_winch, SIGWINCH);
    ev_signal_init(&line->cont, on_cont, SIGCONT);
    ev_signal_init(&line->suspend, on_suspend, SIGTSTP);
    line->winch.data = line->cont.data = line->suspend.data = line;
    ev_signal_start(repl->loop, &line->winch);
    ev_signal_start(repl->loop, &line->cont);
    ev_signal_start(repl->loop, &line->suspend);
    repl_set_ask(repl, line_ask, line);
    repl->front.ask_in_line = true;
    repl_offer_at_prompt(repl);
    execute_ahead(line);
    show_prompt(line);
}

static void end_terminal(struct line *line)
{
    hide_prompt(line);
    tty_out_when_empty(NULL, NULL);
    rl_outstream = stdout;
    rl_redisplay_function = rl_redisplay;
    rl_prep_term_function = rl_prep_terminal;
    rl_deprep_term_function = rl_deprep_terminal;
    line_history_save(line->repl);
    ev_signal_stop(line->repl->loop, &line->winch);
    ev_signal_stop(line->repl->loop, &line->cont);
    ev_signal_stop(line->repl->loop, &line->suspend);
    repl_set_ask(line->repl, NULL, NULL);
    line->repl->front.ask_in_line = false;
}

static const struct repl_prompt_ops prompt_ops = {.is_idle = is_idle, .offer = offer_at_prompt};

int repl_run_prompt(struct repl *repl)
{
    struct line line = {.repl = repl, .terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};

    gd_buf_init(&line.pending, (size_t)1 << 20);
    gd_buf_init(&line.ahead, MOST_AHEAD);
    ev_io_init(&line.input, line.terminal ? on_terminal : on_pipe, STDIN_FILENO, EV_READ);
    line.input.data = &line;
    active = &line;
    repl->front.pause_input = pause_input;
    repl->front.pause_ctx = &line;
    repl->front.prompt = &prompt_ops;
    repl_set_writer(repl, line_write, &line);
    if (line.terminal) {
        start_terminal(&line);
    }
    ev_io_start(repl->loop, &line.input);
    while (!is_over(&line)) {
        ev_run(repl->loop, EVRUN_ONCE);
        gd_debugger_reap(repl->debugger);
    }
    ev_io_stop(repl->loop, &line.input);
    if (line.terminal) {
        end_terminal(&line);
    }
    repl->front.pause_input = NULL;
    repl->front.prompt = NULL;
    repl_set_writer(repl, NULL, NULL);
    active = NULL;
    gd_buf_deinit(&line.pending);
    line_paste_stop();
    gd_buf_deinit(&line.ahead);
    return GD_OK;
}
