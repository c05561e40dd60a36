// SPDX-License-Identifier: GPL-3.0-or-later
/* The main loop of the panes: keys in, commands run, pictures out. */
#include "tui/tui_impl.h"

#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "repl/core/repl.h"
#include "repl/out/tty.h"
#include "repl/out/tty_out.h"
#include "tui/guard.h"

/* ---- commands ------------------------------------------------------------------------------ */

static bool ask_question(void *ctx, const char *question);

/* The user quits, or gives the terminal back. */
static bool is_leaving(struct repl *repl)
{
    return repl_wants_quit(repl) || repl_has_left(repl);
}

/* Runs the loop until something has happened. */
static void pump_once(struct tui *tui)
{
    tui->debugger->pump(tui->debugger->pump_ctx, -1);
    gd_debugger_reap(tui->debugger);
}

static void run_line(struct tui *tui, const struct tui_line_due *due)
{
    struct gd_buf echo = GD_BUF_INIT(70000);

    gd_buf_printf(&echo, "%s%s", due->typed ? repl_prompt(tui->repl) : "(gradb) ", due->text);
    tui_console_add(tui, DRAW_BOLD, gd_buf_text(&echo), echo.len);
    gd_buf_deinit(&echo);
    tui->console.back = 0;
    tui->executing = true;
    tui->keyboard = due->keyboard;
    repl_tell_typed(tui->repl, due->text);
    if (due->typed) {
        repl_execute(tui->repl, due->text);
    } else { /* an empty line repeats the last typed line, not a key's command */
        repl_execute_beside(tui->repl, due->text);
        repl_forget_repeat(tui->repl);
    }
    tui->keyboard = false;
    tui->executing = false;
    tui_redraw(tui);
}

static void run_queue(struct tui *tui)
{
    while (tui->queue_count > 0 && !repl_wants_quit(tui->repl)) {
        struct tui_line_due due = tui->queue[0];
        tui->queue_count--;
        memmove(tui->queue, tui->queue + 1, tui->queue_count * sizeof(*tui->queue));
        if (!due.question || ask_question(tui, due.question)) {
            run_line(tui, &due);
        }
        free(due.text);
    }
}

static void queue_clear(struct tui *tui)
{
    for (size_t i = 0; i < tui->queue_count; i++) {
        free(tui->queue[i].text);
    }
    tui->queue_count = 0;
}

static void on_input(struct ev_loop *loop, ev_io *io, int events)
{
    struct tui *tui = io->data;
    enum tty_input input = tty_look(STDIN_FILENO);

    (void)events;
    if (input != TTY_BYTES) {
        if (input == TTY_GONE) {
            tui->ended = true;
            ev_io_stop(loop, io);
        }
        return;
    }
    for (int key = draw_key(tui->draw); key >= 0; key = draw_key(tui->draw)) {
        tui_key(tui, key);
        if (tui->plain) {
            break; /* the plain prompt reads the rest */
        }
    }
    tui_redraw(tui);
}

static void on_interrupt(struct ev_loop *loop, ev_signal *signal, int events)
{
    struct tui *tui = signal->data;

    (void)loop;
    (void)events;
    tui_paste_stop(tui);
    if (tui->question) {
        tui->answer = 'n';
    } else if (!tui->executing) { /* a waiting command is interrupted by the owner of the signal */
        tui_prompt_clear(tui);
        tui->dirty_now = true;
    }
}

static bool ask_question(void *ctx, const char *question)
{
    struct tui *tui = ctx;

    tui_console_add(tui, DRAW_BOLD, question, strlen(question));
    tui->question = question;
    tui->asked_before = tui->focus;
    tui->answer = 0;
    tui->taken_len = 0;
    tui->focus = TUI_CONSOLE; /* where the question is shown */
    tui->help = false;
    tui_redraw(tui);
    while (tui->answer == 0 && !tui->ended && !is_leaving(tui->repl)) {
        pump_once(tui);
    }
    tui->question = NULL;
    tui->focus = tui->asked_before;
    return tui->answer == 'y' || (tui->ended && !repl_is_resident(tui->repl));
}

static void on_event(void *ctx, const struct gd_event *event)
{
    if (event->type == GD_EV_SELECTED) {
        tui_tree_update(ctx); /* the old session may be freed before the next picture is drawn */
    }
    tui_panes_event(ctx, event);
    tui_changed(ctx);
}

/* ---- the whole ---- */

static void watchers_start(struct tui *tui)
{
    ev_io_start(tui->loop, &tui->input);
    ev_signal_start(tui->loop, &tui->interrupt);
    tui_frames_start(tui);
}

static void watchers_stop(struct tui *tui)
{
    ev_io_stop(tui->loop, &tui->input);
    ev_signal_stop(tui->loop, &tui->interrupt);
    tui_frames_stop(tui);
}

static void on_answer(struct ev_loop *loop, ev_io *io, int events)
{
    struct tui *tui = io->data;
    char c = '\n';

    (void)loop;
    (void)events;
    if (tty_look(STDIN_FILENO) == TTY_NOTHING) {
        return;
    }
    if (read(STDIN_FILENO, &c, 1) <= 0) {
        tui->ended = true;
    }
    tui->answer = c == '\n' ? c : tui->answer;
}

/* Keeps a program's output on the plain screen until the user has read it. */
static void wait_for_enter(struct tui *tui)
{
    ev_io input;

    tty_out_puts(STDOUT_FILENO, "\nPress Enter to return to the panes. ");
    ev_io_init(&input, on_answer, STDIN_FILENO, EV_READ);
    input.data = tui;
    tui->answer = 0;
    tui->debugger->interrupted = false;
    ev_io_start(tui->loop, &input);
    while (tui->answer == 0 && !tui->ended && !tui->debugger->interrupted &&
           !is_leaving(tui->repl)) {
        pump_once(tui);
    }
    ev_io_stop(tui->loop, &input);
    tui->debugger->interrupted = false;
}

/* A program started by `shell` or `pipe` has the terminal for a while. */
static void lend_terminal(void *ctx, bool lend_it)
{
    struct tui *tui = ctx;

    if (lend_it) {
        watchers_stop(tui);
        draw_leave(tui->draw);
        return;
    }
    wait_for_enter(tui);
    draw_enter(tui->draw);
    tui_take_size(tui);
    watchers_start(tui);
    tui_redraw(tui);
}

static void repl_take(struct tui *tui)
{
    repl_set_writer(tui->repl, tui_console_write, tui);
    repl_set_ask(tui->repl, ask_question, tui);
    repl_set_lend(tui->repl, lend_terminal, tui);
    tui_take_size(tui);
}

static void go_plain(struct tui *tui)
{
    tui->plain = false;
    tui->single_key = false;
    watchers_stop(tui);
    repl_set_lend(tui->repl, NULL, NULL);
    repl_offer_later(tui->repl); /* the plain prompt would ask first */
    draw_leave(tui->draw);
    tui_guard_disarm();
    tui_prompt_plain(tui);
    if (is_leaving(tui->repl)) {
        tui->plain = true; /* the next terminal starts with the plain prompt */
        return;
    }
    tui_guard_arm(draw_restore_text(tui->draw));
    tty_flow_take(STDIN_FILENO); /* curses restores it when the panes end */
    repl_out_wait(tui->repl, 0);
    draw_enter(tui->draw);
    repl_take(tui);
    watchers_start(tui);
    tui_redraw(tui);
}

static void run_loop(struct tui *tui)
{
    while (!is_leaving(tui->repl) && !tui->ended) {
        run_queue(tui);
        tui->plain = repl_take_prompt_wish(tui->repl) || tui->plain;
        if (tui->plain) {
            go_plain(tui);
        }
        if (!is_leaving(tui->repl) && tui->queue_count == 0) {
            pump_once(tui);
        }
    }
    if (tui->ended && repl_is_resident(tui->repl)) {
        raise(SIGHUP); /* the terminal is gone; nobody asked to quit */
    } else if (tui->ended) {
        repl_quit(tui->repl, STATUS_OK);
    }
}

/* Messages from before the panes opened went to the plain screen: repeats the essential ones. */
static void print_greeting(struct tui *tui)
{
    static const char text[] =
        "C-x o goes to the next pane, : back to the prompt, C-x a leaves the panes.";
    const struct gd_session *session = tui->debugger->current;
    struct gd_buf line = GD_BUF_INIT(2048);

    if (session) {
        gd_buf_printf(&line, "Training process %d: %s, %s", session->number, session->peer.program,
                      gd_state_name(session->state));
        if (session->state == GD_STOPPED && gd_stop_is_before_first(&session->stop)) {
            gd_buf_puts(&line, " before the first step");
        }
        gd_buf_puts(&line, ".");
        tui_console_add(tui, DRAW_PLAIN, gd_buf_text(&line), line.len);
    }
    gd_buf_deinit(&line);
    tui_console_add(tui, DRAW_DIM, text, sizeof(text) - 1);
}

/* Why panes are impossible; NULL: they are possible. */
static const char *no_panes(char *why, size_t why_size)
{
    const char *term = getenv("TERM");
    struct winsize size;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        return "standard input and output are not a terminal";
    }
    if (!term || term[0] == '\0' || strcmp(term, "dumb") == 0) {
        return "this terminal type cannot show them";
    }
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 &&
        (size.ws_row < TUI_MIN_ROWS || size.ws_col < TUI_MIN_COLS)) {
        snprintf(why, why_size, "the terminal is %dx%d, but they need %dx%d", size.ws_col,
                 size.ws_row, TUI_MIN_COLS, TUI_MIN_ROWS);
        return why;
    }
    return NULL;
}

/* ---- terminals ---- */

/* The panes of a session whose terminal went away: the next terminal shows them as they were. */
static struct tui *kept;

static void terminal_give(struct tui *tui)
{
    watchers_stop(tui);
    repl_set_writer(tui->repl, NULL, NULL);
    repl_set_ask(tui->repl, NULL, NULL);
    repl_set_lend(tui->repl, NULL, NULL);
    tui_prompt_stop(tui);
    tui_paste_stop(tui);
    tui_guard_disarm();
    tui_form_close(tui);
    draw_close(tui->draw);
    tui->draw = NULL;
    tui_control_stop(tui);
}

static int terminal_take(struct tui *tui, struct gd_err *err)
{
    setlocale(LC_CTYPE, "");
    tui->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 && tui->debugger->settings.charset != 2;
    tui->ended = false;
    tui->prefix = 0;
    tui->single_key = false;
    tui->mouse = false; /* a setting of the terminal; follow_mouse applies it again */
    ev_io_init(&tui->input, on_input, STDIN_FILENO, EV_READ);
    ev_signal_init(&tui->interrupt, on_interrupt, SIGINT);
    tui->input.data = tui->interrupt.data = tui;
    tui_frames_init(tui);
    tui_frames_take_signals(tui); /* before curses installs its own handlers */
    tui_guard_save();
    repl_out_wait(tui->repl, 0); /* curses would write ahead of it */
    int rc = draw_open(tui->utf8, tui->debugger->settings.altscreen, &tui->draw, err);
    if (rc != GD_OK) {
        tui_frames_stop(tui);
        return rc;
    }
    tui_guard_arm(draw_restore_text(tui->draw));
    tui_control_start(tui);
    tui_prompt_start(tui);
    repl_take(tui);
    watchers_start(tui);
    return GD_OK;
}

static void tui_destroy(struct tui *tui)
{
    gd_debugger_unobserve(tui->debugger, on_event, tui);
    tui_panes_destroy(tui);
    tui_tree_destroy(tui->tree.tree);
    tui_console_free(tui);
    queue_clear(tui);
    free(tui);
}

static struct tui *tui_create(struct ev_loop *loop, struct repl *repl, struct gd_err *err)
{
    struct tui *tui = calloc(1, sizeof(*tui));

    if (!tui) {
        gd_fail_nomem(err);
        return NULL;
    }
    tui->loop = loop;
    tui->repl = repl;
    tui->debugger = repl_debugger(repl);
    tui->focus = tui->shown = tui->next = TUI_CONSOLE;
    int rc = tui_tree_create(&tui->tree.tree, err);
    if (rc == GD_OK) {
        rc = tui_panes_create(tui, err);
    }
    if (rc == GD_OK) {
        rc = gd_debugger_observe(tui->debugger, on_event, tui);
    }
    if (rc != GD_OK) {
        gd_fail(err, rc, "out of memory for the panes");
        tui_destroy(tui);
        return NULL;
    }
    print_greeting(tui);
    return tui;
}

/* Without a terminal they continue to receive events and output. */
static void keep_panes(struct tui *tui)
{
    kept = tui;
    repl_set_writer(tui->repl, tui_console_write, tui);
}

void tui_forget(void)
{
    if (kept) {
        repl_set_writer(kept->repl, NULL, NULL);
        tui_destroy(kept);
        kept = NULL;
    }
}

/* GD_EUNSUPPORTED: this terminal cannot show panes; err says why. */
static int run_panes(struct ev_loop *loop, struct repl *repl, struct gd_err *err)
{
    char text[120];
    const char *why = no_panes(text, sizeof(text));

    if (why) {
        return gd_fail(err, GD_EUNSUPPORTED, "%s", why);
    }
    struct tui *tui = kept ? kept : tui_create(loop, repl, err);
    if (!tui) {
        return GD_ENOMEM;
    }
    kept = NULL;
    int rc = terminal_take(tui, err);
    if (rc == GD_EUNSUPPORTED) {
        keep_panes(tui);
        return rc;
    }
    if (rc != GD_OK) {
        tui_destroy(tui);
        return rc;
    }
    repl_offer_at_prompt(tui->repl);
    tui->dirty = tui->dirty_now = true;
    run_loop(tui);
    terminal_give(tui);
    bool lost = tui->ended && repl_is_resident(repl); /* its SIGHUP will follow */
    if ((repl_has_left(repl) || lost) && !repl_wants_quit(repl)) {
        keep_panes(tui);
    } else {
        tui_destroy(tui);
    }
    return GD_OK;
}

int tui_run(struct ev_loop *loop, struct repl *repl, struct gd_err *err)
{
    struct gd_err why = {.code = GD_OK};
    int rc = run_panes(loop, repl, &why);

    /* Falls back to the prompt until panes are asked for again: the terminal may be larger then. */
    while (rc == GD_EUNSUPPORTED && !is_leaving(repl)) {
        tty_out_puts(STDERR_FILENO, "No panes: ");
        tty_out_puts(STDERR_FILENO, why.text);
        tty_out_puts(STDERR_FILENO, ".\n");
        repl_run_prompt(repl);
        if (is_leaving(repl)) {
            return GD_OK;
        }
        rc = run_panes(loop, repl, &why);
    }
    return rc == GD_OK ? rc : gd_fail(err, rc, "%s", why.text);
}
