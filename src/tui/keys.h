// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What keys do, once: the table that input is looked up in and that the help screen shows.
 */
#ifndef GD_TUI_KEYS_H
#define GD_TUI_KEYS_H

#include <stdbool.h>

enum tui_pane_id { TUI_TREE = 0, TUI_NODE, TUI_CONSOLE, TUI_PANE_COUNT };

enum tui_request {
    TUI_NOTHING = 0,
    TUI_UP,
    TUI_DOWN,
    TUI_PAGE_UP,
    TUI_PAGE_DOWN,
    TUI_TOP,
    TUI_BOTTOM,
    TUI_FOLD,
    TUI_UNFOLD,
    TUI_TOGGLE,
    TUI_COMMAND, /* .command */
    TUI_OTHER_PANE,
    TUI_REDRAW,
    TUI_PLAIN, /* leaves the panes for the plain prompt */
    TUI_HELP,
};

struct tui_key {
    int prefix; /* C-x, or 0 */
    int key;    /* as draw_key gives it */
    const char *name;
    unsigned panes; /* bits: 1 << enum tui_pane_id */
    enum tui_request request;
    /* Run through repl_execute; %n is the name of the node under the cursor, %b the number of its
     * breakpoint. A command whose names are missing does not run. */
    const char *command;
    const char *help; /* "" repeats the line above under another name */
};

extern const struct tui_key tui_keys[]; /* ends with a NULL name */

/* NULL when the key means nothing there. */
const struct tui_key *tui_key_find(int prefix, int key, enum tui_pane_id pane);
bool tui_key_is_prefix(int key);

#endif
