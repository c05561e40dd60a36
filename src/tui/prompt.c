// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * readline without its terminal: keys are fed to it one at a time, and the console draws the line.
 */
#include "tui/tui_impl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include <readline/readline.h>

#include "repl/line/line.h"
#include "repl/line/line_moves.h"
#include "repl/out/tty_out.h"
#include "tui/text.h"

/* readline keeps its state in globals, and its callbacks have no context argument. */
static struct tui *active;

#define ESCAPE    0x1b
#define ABORT_KEY 7 /* C-g: given to readline when it asks for more input than there is */

/* ---- readline's side ---- */

static int next_byte(FILE *stream)
{
    (void)stream;
    return active->typed_at < active->typed_len ? active->typed[active->typed_at++] : ABORT_KEY;
}

static int input_waits(void)
{
    return active->typed_at < active->typed_len;
}

static void mark_changed(void)
{
    line_mend();
    tui_changed(active);
}

static void prepare_nothing(int meta)
{
    (void)meta;
}

static void deprepare_nothing(void)
{
}

static void on_line(char *text)
{
    if (!text) {
        if (active->executing) {
            return;
        }
        if (repl_interact_ends(active->repl)) {
            tui_changed(active);
        } else {
            tui_run_typed(active, "quit"); /* C-d on an empty line, as in gdb */
        }
        return;
    }
    char *rest = text; /* several lines may have been pasted */
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        /* An empty line repeats the previous command, which is unknown yet for a line that is typed
         * ahead. */
        bool ahead = active->executing || active->queue_count > 0;
        if (!(ahead && line[0] == '\0') && !tui_offer_line(active, line)) {
            line_remember(active->repl, line);
            tui_run_typed(active, line);
        }
    }
    free(text);
}

static void add_match_row(void *ctx, const char *row)
{
    tui_console_add(ctx, DRAW_DIM, row, strlen(row));
}

/* Candidates in columns, as a shell shows them. */
static void show_matches(char **matches, int count, int longest)
{
    int rows, cols;

    (void)longest;
    draw_size(active->draw, &rows, &cols);
    line_match_rows(matches, count, cols, 100, add_match_row, active);
}

static char **complete_word(const char *text, int start, int end)
{
    (void)text;
    return active ? line_complete(active->repl, start, end) : NULL;
}

static int leave_key(int count, int key)
{
    (void)count;
    (void)key;
    line_leave(active->repl);
    return 0;
}

/* ---- ours ---- */

static void install_hooks(void)
{
    rl_callback_handler_install("", on_line);
}

/* panes: false when readline owns the terminal (plain prompt). */
static void take_hooks(bool panes)
{
    rl_getc_function = panes ? next_byte : rl_getc;
    rl_input_available_hook = panes ? input_waits : NULL;
    rl_redisplay_function = panes ? mark_changed : rl_redisplay;
    rl_prep_term_function = panes ? prepare_nothing : rl_prep_terminal;
    rl_deprep_term_function = panes ? deprepare_nothing : rl_deprep_terminal;
    rl_completion_display_matches_hook = panes ? show_matches : NULL;
    rl_completion_query_items = -1; /* readline's question would wait for a key of its own */
    rl_catch_signals = 0;
    rl_catch_sigwinch = 0;
    rl_change_environment = 0;
}

void tui_prompt_start(struct tui *tui)
{
    active = tui;
    rl_readline_name = "gradb";
    rl_attempted_completion_function = complete_word;
    rl_basic_word_break_characters = " \t\n";
    rl_completer_quote_characters = "";
    take_hooks(true);
    line_keys_take();
    line_history_load(tui->repl);
    install_hooks();
}

void tui_prompt_stop(struct tui *tui)
{
    line_put_away();
    line_history_save(tui->repl);
    take_hooks(false);
    active = NULL;
}

void tui_prompt_clear(struct tui *tui)
{
    line_put_away();
    install_hooks();
    tui->meta = false;
    tui_changed(tui);
}

/* Inserts all lines of it; Enter runs them. */
void tui_prompt_paste(struct tui *tui, const char *text)
{
    rl_callback_sigcleanup(); /* ends an incremental search */
    line_search_end(true);
    tui->meta = false;
    tui->console.back = 0;
    rl_insert_text(text);
    line_mend();
    tui_changed(tui);
}

/* Terminals send these keys as escape sequences, and readline's bindings expect them so. */
static const char *sequence_of(int key)
{
    switch (key) {
    case DRAW_KEY_UP: return "\033[A";
    case DRAW_KEY_DOWN: return "\033[B";
    case DRAW_KEY_RIGHT: return "\033[C";
    case DRAW_KEY_LEFT: return "\033[D";
    case DRAW_KEY_HOME: return "\033[H";
    case DRAW_KEY_END: return "\033[F";
    case DRAW_KEY_DELETE: return "\033[3~";
    case DRAW_KEY_BACKSPACE: return "\177";
    default: return NULL;
    }
}

void tui_prompt_key(struct tui *tui, int key)
{
    const char *sequence = sequence_of(key);

    if (sequence) {
        tui->typed_len = strlen(sequence);
        memcpy(tui->typed, sequence, tui->typed_len);
    } else if (key >= DRAW_KEY_UP) {
        return;
    } else if (key < 0x80) {
        tui->typed[0] = (unsigned char)key;
        tui->typed_len = 1;
    } else {
        mbstate_t state = {0};
        size_t len = wcrtomb((char *)tui->typed, (wchar_t)key, &state);
        if (len == (size_t)-1) {
            return;
        }
        tui->typed_len = len;
    }
    if (key == ESCAPE && !tui->meta) { /* begins a Meta sequence */
        tui->meta = true;
        return;
    }
    if (tui->meta) {
        memmove(tui->typed + 1, tui->typed, tui->typed_len);
        tui->typed[0] = ESCAPE;
        tui->typed_len++;
        tui->meta = false;
    }
    tui->console.back = 0;
    for (tui->typed_at = 0; tui->typed_at < tui->typed_len;) {
        rl_callback_read_char();
    }
}

/* When the text is wider than the row, draws the part around the cursor. */
static void draw_line(struct tui *tui, int row, int col, int cols, const char *text, size_t point,
                      bool focused)
{
    int before = tui_text_width(text, point, tui->utf8);

    while (before >= cols) {
        struct tui_glyph glyph;
        text += tui_glyph(text, tui->utf8, &glyph);
        before -= glyph.width;
    }
    draw_text(tui->draw, row, col, cols, DRAW_PLAIN, text);
    if (focused) {
        draw_cursor(tui->draw, row, col + before);
    }
}

void tui_prompt_draw(struct tui *tui, int row, int col, int cols, bool focused)
{
    const char *prompt = repl_prompt(tui->repl);

    if (tui->question) {
        int used = draw_text(tui->draw, row, col, cols, DRAW_BOLD, "(y or n) ");
        draw_cursor(tui->draw, row, col + (used < cols ? used : cols - 1));
        return;
    }
    if (tui->executing) {
        prompt = repl_is_waiting(tui->repl) ? "(running, C-c stops) " : "(running) ";
    } else if (rl_display_prompt && rl_display_prompt[0] != '\0') {
        prompt = rl_display_prompt; /* during a history search */
    }
    int used = draw_text(tui->draw, row, col, cols, focused ? DRAW_BOLD : DRAW_DIM, prompt);
    if (used + 1 < cols) {
        draw_line(tui, row, col + used, cols - used - 1, rl_line_buffer ? rl_line_buffer : "",
                  rl_point > 0 ? (size_t)rl_point : 0, focused);
    }
}

void tui_prompt_plain(struct tui *tui)
{
    line_put_away();
    line_history_save(tui->repl);
    take_hooks(false);
    rl_catch_signals = 0;
    rl_bind_keyseq("\\C-xa", leave_key);
    rl_bind_keyseq("\\C-x\\C-a", leave_key);
    tty_out_puts(STDOUT_FILENO, "The panes are hidden: C-x a brings them back.\n");
    repl_run_prompt(tui->repl);
    tui_prompt_start(tui);
}
