// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Routes a key: to a question, the list of keys, a form, a field of a pane, the table of keys, or
 * the prompt. Outside single-key mode a plain character never resumes, ends or changes a run.
 */
#include <limits.h>
#include <string.h>
#include <wchar.h>

#include "tui/tui_impl.h"

#define CTRL_L ('l' & 0x1f)

static void run_key_command(struct tui *tui, const struct tui_key *key)
{
    struct gd_buf line = GD_BUF_INIT(65536);

    if (!tui->executing && tui_fill_command(tui, key->command, &line)) {
        struct tui_line_due due = {.text = (char *)gd_buf_text(&line), .question = key->question};
        due.keyboard = tui->focus != TUI_CONSOLE || strncmp(due.text, "focus ", 6) == 0;
        tui_run_due(tui, &due);
    }
    gd_buf_deinit(&line);
}

static void run_request(struct tui *tui, const struct tui_key *key)
{
    switch (key->request) {
    case TUI_OTHER_PANE: tui_focus_next(tui, 1); break;
    case TUI_OTHER_PANE_BACK: tui_focus_next(tui, -1); break;
    case TUI_ONE_PANE: tui->one_pane = !tui->one_pane; break;
    case TUI_TWO_PANES:
        tui_set_layout(tui, (enum tui_layout)((tui->layout + 1) % LAYOUT_COUNT));
        break;
    case TUI_SINGLE_KEY: tui->single_key = !tui->single_key && !tui->small; break;
    case TUI_PROMPT: tui_to_prompt(tui); break;
    case TUI_REDRAW: draw_forget(tui->draw); break;
    case TUI_PLAIN: tui->plain = true; break;
    case TUI_HELP:
        tui->help = true;
        tui->help_first = 0;
        break;
    case TUI_COMMAND: run_key_command(tui, key); break;
    default: tui_pane_request(tui, tui->focus, key->request); break;
    }
}

static bool is_printable(int key)
{
    return key >= ' ' && key != 0x7f && key < DRAW_KEY_UP;
}

/* Keys that only move the cursor are not recorded: no command begins with them. */
static void note_taken(struct tui *tui, const struct tui_key *by, int key)
{
    mbstate_t state = {0};
    bool moves = by && (by->request == TUI_UP || by->request == TUI_DOWN);

    if (!is_printable(key) || tui->single_key || (moves && tui->taken_len == 0) ||
        tui->taken_len + MB_LEN_MAX >= sizeof(tui->taken)) {
        return;
    }
    size_t len = wcrtomb(tui->taken + tui->taken_len, (wchar_t)key, &state);
    tui->taken_len += len != (size_t)-1 ? len : 0;
}

/* A key without a meaning in the pane was meant for the prompt. */
static void type_at_prompt(struct tui *tui, int key)
{
    tui_to_prompt(tui);
    note_taken(tui, NULL, key);
    tui->taken[tui->taken_len] = '\0';
    tui_prompt_paste(tui, tui->taken);
    tui->taken_len = 0;
}

/* Space and the keys that move scroll the list of keys; any other key closes it. */
static void on_help_key(struct tui *tui, int key)
{
    const struct tui_key *found = tui_key_find(0, key, TUI_NODE, false);
    bool scrolls = found && found->request >= TUI_UP && found->request <= TUI_BOTTOM;

    if (scrolls || key == ' ') {
        tui_help_scroll(tui, scrolls ? found->request : TUI_PAGE_DOWN);
        note_taken(tui, found, key);
        return;
    }
    tui->help = false;
    bool known = key == 'q' || key == '?' || tui->single_key ||
                 (tui->focus != TUI_CONSOLE && tui_key_find(0, key, tui->focus, false));
    if (is_printable(key) && !known) {
        type_at_prompt(tui, key);
    } else {
        note_taken(tui, NULL, key);
    }
}

/* Typing a command instead of an answer means no; the prompt gets the key. */
static void on_answer_key(struct tui *tui, int key)
{
    if (key == 'y' || key == 'Y') {
        tui->answer = 'y';
    } else if (key == 'n' || key == 'N' || key == 0x1b) {
        tui->answer = 'n';
    } else if (key == CTRL_L) {
        draw_forget(tui->draw);
    } else if (is_printable(key) && key != ' ') {
        tui->answer = 'n';
        tui->asked_before = TUI_CONSOLE;
        type_at_prompt(tui, key);
    }
}

/* A key after C-x or a special key: as the table says; otherwise the prompt takes it. */
static void on_table_key(struct tui *tui, int key)
{
    int prefix = tui->prefix;
    bool typed = prefix == 0 && is_printable(key);

    tui->prefix = 0;
    if (prefix == 0 && tui_key_is_prefix(key)) {
        tui->prefix = key;
        return;
    }
    const struct tui_key *found = tui_key_find(prefix, key, tui->focus, tui->single_key);
    if (found) {
        if (typed) {
            note_taken(tui, found, key);
        }
        run_request(tui, found);
    } else if (typed && (tui->focus != TUI_CONSOLE || tui->single_key)) {
        type_at_prompt(tui, key);
    } else if (tui->focus == TUI_CONSOLE) {
        if (prefix != 0) {
            tui_prompt_key(tui, prefix);
        }
        tui_prompt_key(tui, key == '\n' ? '\r' : key);
    }
}

void tui_key(struct tui *tui, int key)
{
    if (!is_printable(key) || tui->prefix != 0) {
        tui->taken_len = 0;
    }
    if (tui_paste_key(tui, key)) {
        return;
    }
    if (key == DRAW_KEY_MOUSE) {
        tui_mouse(tui);
        return;
    }
    if (tui->question && tui->answer == 0) {
        on_answer_key(tui, key);
        return;
    }
    if (tui->help) {
        on_help_key(tui, key);
        return;
    }
    if (tui->form) {
        tui_form_key(tui, key);
        return;
    }
    if (tui->prefix == 0 && tui_pane_key(tui, tui->focus, key)) {
        tui->taken_len = 0;
        return;
    }
    on_table_key(tui, key);
}
