// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The table of keys: input is looked up in it, and `help keys` and the list of keys on the screen
 * are generated from it. gradbrc may rebind keys: `bind KEY COMMAND`, `bind -p PANE KEY COMMAND`,
 * `bind KEY -` to disable one. Bindings take precedence over the table.
 */
#ifndef GD_TUI_KEYS_H
#define GD_TUI_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* pane_names (repl/commands/screen/panes.c) has their names, in this order. */
enum tui_pane_id {
    TUI_TREE,
    TUI_NODE,
    TUI_CONSOLE,
    TUI_WATCH,
    TUI_HITS,
    TUI_STACK, /* stack of the node, source lines of the graph */
    TUI_SOURCE,
    TUI_TENSOR,
    TUI_HISTORY,
    TUI_LOG,
    TUI_PANE_COUNT
};

enum tui_request {
    TUI_NOTHING = 0,
    /* lists and texts */
    TUI_UP,
    TUI_DOWN,
    TUI_LEFT,
    TUI_RIGHT,
    TUI_PAGE_UP,
    TUI_PAGE_DOWN,
    TUI_HALF_UP,
    TUI_HALF_DOWN,
    TUI_TOP,
    TUI_BOTTOM,
    TUI_FOLD,
    TUI_UNFOLD,
    TUI_OPEN,   /* Enter: open, jump, follow */
    TUI_MARK,   /* Space */
    TUI_RETURN, /* C-o: back to where Enter was pressed */
    TUI_BACK,   /* q, Escape: one level back; never quits */
    TUI_SEARCH, /* '/': the pane's own search, typed in its last line */
    TUI_NEXT_MATCH,
    TUI_PREVIOUS_MATCH,
    TUI_FILTER,  /* the tree's filter line */
    TUI_NEW,     /* form for a new watchpoint */
    TUI_EDIT,    /* form for an existing one */
    TUI_ZOOM_IN, /* the history's chart */
    TUI_ZOOM_OUT,
    TUI_LOG_SCALE,
    TUI_SMOOTH,
    TUI_MODE, /* switches what the pane shows: current, previous, difference */
    /* the tensor's grid */
    TUI_LOOK, /* numbers or heat map */
    TUI_ROW_START,
    TUI_ROW_END,
    TUI_INDEX_BACK, /* along the axes that are not shown */
    TUI_INDEX_NEXT,
    TUI_AXIS_ROWS, /* selects another axis for the rows */
    TUI_AXIS_COLS,
    /* the screen */
    TUI_COMMAND, /* .command */
    TUI_OTHER_PANE,
    TUI_OTHER_PANE_BACK,
    TUI_ONE_PANE,  /* C-x 1 */
    TUI_TWO_PANES, /* C-x 2: the next layout */
    TUI_SINGLE_KEY,
    TUI_PROMPT, /* moves the keyboard to the prompt */
    TUI_REDRAW,
    TUI_PLAIN, /* leaves the panes for the plain prompt */
    TUI_HELP,
};

struct tui_key {
    int prefix; /* C-x, or 0 */
    int key;    /* as returned by draw_key */
    const char *name;
    unsigned panes; /* bits: 1 << enum tui_pane_id */
    bool single;    /* only in single-key mode */
    enum tui_request request;
    /* Run through repl_execute. %n is the node selected in the focused pane; %t its tensor,
     * NODE:SLOT[SLICE]; %b its breakpoint's number; %w its watchpoint's; %h its hit's. A command
     * with a missing word does not run. */
    const char *command;
    const char *help;     /* "": another name of the key above */
    const char *brief;    /* its word in the bottom line; "": not shown there */
    const char *question; /* asked before the command runs; NULL none */
};

extern const struct tui_key tui_keys[]; /* ends with a NULL name */

/* NULL when the key has no meaning in this pane. User bindings come first. */
const struct tui_key *tui_key_find(int prefix, int key, enum tui_pane_id pane, bool single);
bool tui_key_is_prefix(int key);

/* name: "C-x o", "F5", "g", "Enter". pane TUI_PANE_COUNT: all lists. command NULL: disables the
 * key. GD_EINVAL, GD_ELIMIT. */
int tui_key_bind(const char *name, enum tui_pane_id pane, const char *command, struct gd_err *err);
/* True for a command that cannot resume, end or change the training: a plain character may run it
 * whenever a pane has the keyboard. Other commands bound to a character need single-key mode. */
bool tui_key_only_shows(const char *line);
bool tui_key_is_bound(const struct tui_key *key); /* bound by the user */

/* Visits every key in display order, grouped, user bindings last. help: what the key does, also
 * where the table leaves it empty; same: does the same as the previous key. */
typedef void (*tui_key_fn)(void *ctx, const char *group, const struct tui_key *key,
                           const char *help, bool same);
void tui_keys_each(tui_key_fn fn, void *ctx);
/* "all", "lists", "lists but tensor", "graph watch" */
void tui_key_panes(const struct tui_key *key, char *out, size_t size);

/* By "graph", "watch", ... GD_ENOTFOUND lists the names. */
int tui_pane_find(const char *name, enum tui_pane_id *ret, struct gd_err *err);

#endif
