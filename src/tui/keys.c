// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/keys.h"

#include <stddef.h>

#include "tui/draw.h"

#define CTRL(c) ((c)&0x1f)
#define C_X     CTRL('x')
#define TREE    (1u << TUI_TREE)
#define NODE    (1u << TUI_NODE)
#define CONSOLE (1u << TUI_CONSOLE)
#define LISTS   (TREE | NODE)
#define ALL     (LISTS | CONSOLE)

const struct tui_key tui_keys[] = {
    {C_X, 'o', "C-x o", ALL, TUI_OTHER_PANE, NULL, "go to the next pane"},
    {0, '\t', "Tab", LISTS, TUI_OTHER_PANE, NULL, ""},
    {C_X, 'a', "C-x a", ALL, TUI_PLAIN, NULL, "leave the panes for the plain prompt, and back"},
    {C_X, CTRL('a'), "C-x C-a", ALL, TUI_PLAIN, NULL, ""},
    {0, CTRL('l'), "C-l", ALL, TUI_REDRAW, NULL, "draw the screen again"},
    {0, '?', "?", LISTS, TUI_HELP, NULL, "show or hide this list"},
    {0, DRAW_KEY_F1, "F1", ALL, TUI_HELP, NULL, ""},

    {0, DRAW_KEY_UP, "Up", LISTS, TUI_UP, NULL, "a line up"},
    {0, 'k', "k", LISTS, TUI_UP, NULL, ""},
    {0, DRAW_KEY_DOWN, "Down", LISTS, TUI_DOWN, NULL, "a line down"},
    {0, 'j', "j", LISTS, TUI_DOWN, NULL, ""},
    {0, DRAW_KEY_PAGE_UP, "PgUp", ALL, TUI_PAGE_UP, NULL, "a page up"},
    {0, DRAW_KEY_PAGE_DOWN, "PgDn", ALL, TUI_PAGE_DOWN, NULL, "a page down"},
    {0, 'g', "g", LISTS, TUI_TOP, NULL, "to the top"},
    {0, DRAW_KEY_HOME, "Home", LISTS, TUI_TOP, NULL, ""},
    {0, 'G', "G", LISTS, TUI_BOTTOM, NULL, "to the end"},
    {0, DRAW_KEY_END, "End", LISTS, TUI_BOTTOM, NULL, ""},
    {0, '\r', "Enter", TREE, TUI_TOGGLE, "node %n", "open or fold a scope; select a node"},
    {0, ' ', "Space", TREE, TUI_TOGGLE, "node %n", ""},
    {0, DRAW_KEY_RIGHT, "Right", TREE, TUI_UNFOLD, NULL, "open a scope"},
    {0, DRAW_KEY_LEFT, "Left", TREE, TUI_FOLD, NULL, "fold a scope, or go to the one around"},

    {0, 'c', "c", LISTS, TUI_COMMAND, "continue", "let the training run"},
    {0, 's', "s", LISTS, TUI_COMMAND, "step", "to the end of the next training step"},
    {0, 'n', "n", LISTS, TUI_COMMAND, "next", "to the next node"},
    {0, 'f', "f", LISTS, TUI_COMMAND, "finish", "to the end of the phase"},
    {0, 'u', "u", LISTS, TUI_COMMAND, "run-to %n", "until the node under the cursor has run"},
    {0, 'b', "b", LISTS, TUI_COMMAND, "break %n", "stop at the node under the cursor"},
    {0, 'd', "d", LISTS, TUI_COMMAND, "delete %b", "delete that breakpoint"},
    {0, 'p', "p", LISTS, TUI_COMMAND, "print %n", "print its value"},
    {0, 'i', "i", LISTS, TUI_COMMAND, "info node %n", "all that is known of it"},
    {0, 'l', "l", LISTS, TUI_COMMAND, "list %n", "the source around it"},
    {0, '<', "<", LISTS, TUI_COMMAND, "inputs %n", "what feeds it"},
    {0, '>', ">", LISTS, TUI_COMMAND, "outputs %n", "what it feeds"},
    {0, 0, NULL, 0, TUI_NOTHING, NULL, NULL},
};

const struct tui_key *tui_key_find(int prefix, int key, enum tui_pane_id pane)
{
    for (const struct tui_key *k = tui_keys; k->name != NULL; k++) {
        if (k->prefix == prefix && k->key == key && (k->panes & 1u << pane) != 0) {
            return k;
        }
    }
    return NULL;
}

bool tui_key_is_prefix(int key)
{
    return key == C_X;
}
