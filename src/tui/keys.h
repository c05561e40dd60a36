// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What keys do, once: the table that input is looked up in and from which `help keys` and the
 * screen of keys are made. The rc file may bind keys anew: `bind KEY COMMAND`, `bind -p PANE KEY
 * COMMAND`, `bind KEY -` for nothing; a bound key wins over the table.
 */
#ifndef GD_TUI_KEYS_H
#define GD_TUI_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum tui_pane_id {
    TUI_TREE = 0, /* "graph" */
    TUI_NODE,     /* "node" */
    TUI_CONSOLE,  /* "console" */
    TUI_WATCH,    /* "watch" */
    TUI_HITS,     /* "hits" */
    TUI_STACK,    /* "stack": source lines of the graph, stack of the node */
    TUI_SOURCE,   /* "source": the file around a line */
    TUI_TENSOR,   /* "tensor" */
    TUI_HISTORY,  /* "history" */
    TUI_LOG,      /* "log" */
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
    TUI_RETURN, /* C-o: where Enter led away from */
    TUI_BACK,   /* q, Escape: a level back; never quits */
    TUI_SEARCH, /* '/': the pane's own search, typed in its last line */
    TUI_NEXT_MATCH,
    TUI_PREVIOUS_MATCH,
    TUI_FILTER, /* the tree's filter bar */
    TUI_NEW,    /* a form: a new watchpoint */
    TUI_EDIT,   /* a form with what is there */
    TUI_MODE,   /* what the pane shows: current / previous / difference, statistics, heat map */
    /* the tensor's grid */
    TUI_LOOK, /* numbers, a heat map */
    TUI_ROW_START,
    TUI_ROW_END,
    TUI_INDEX_BACK, /* of the axes that are not shown */
    TUI_INDEX_NEXT,
    TUI_AXIS_ROWS, /* another axis downwards */
    TUI_AXIS_COLS,
    /* the screen */
    TUI_COMMAND, /* .command */
    TUI_OTHER_PANE,
    TUI_OTHER_PANE_BACK,
    TUI_ONE_PANE,  /* C-x 1 */
    TUI_TWO_PANES, /* C-x 2: the next layout */
    TUI_SINGLE_KEY,
    TUI_PROMPT, /* the keyboard goes to it */
    TUI_REDRAW,
    TUI_PLAIN, /* leaves the panes for the plain prompt */
    TUI_HELP,
};

struct tui_key {
    int prefix; /* C-x, or 0 */
    int key;    /* as draw_key gives it */
    const char *name;
    unsigned panes; /* bits: 1 << enum tui_pane_id */
    bool single;    /* in single-key mode alone */
    enum tui_request request;
    /* Run through repl_execute. %n: the node that the focused pane has selected; %t its tensor,
     * NODE:SLOT[SLICE]; %b the number of its breakpoint; %w of its watchpoint; %h of its hit. A
     * command whose words are missing does not run. */
    const char *command;
    const char *help;     /* "" repeats the line above under another name */
    const char *brief;    /* its word in the bottom line; "" it is not listed there */
    const char *question; /* asked before the command runs; NULL none */
};

extern const struct tui_key tui_keys[]; /* ends with a NULL name */

/* NULL when the key means nothing there. Bound keys first. */
const struct tui_key *tui_key_find(int prefix, int key, enum tui_pane_id pane, bool single);
bool tui_key_is_prefix(int key);

/* "C-x o", "F5", "g", "Enter". GD_EINVAL. */
int tui_key_parse(const char *name, int *prefix, int *key, struct gd_err *err);
/* pane TUI_PANE_COUNT: all lists. command NULL: the key does nothing. GD_EINVAL, GD_ELIMIT. */
int tui_key_bind(const char *name, enum tui_pane_id pane, const char *command, struct gd_err *err);
/* A command that resumes, ends and changes nothing: a character may run it whenever the keyboard is
 * in a pane. Others that are bound to one need single-key mode. */
bool tui_key_only_shows(const char *line);
const struct tui_key *tui_key_bound(int index);   /* the bindings made so far; NULL at the end */
bool tui_key_is_bound(const struct tui_key *key); /* not one of the table */

/* Every key in the order of the lists, those of a group together, bound ones at the end. help: what
 * it does, also where the table does not repeat it; same: as the key before. */
typedef void (*tui_key_fn)(void *ctx, const char *group, const struct tui_key *key,
                           const char *help, bool same);
void tui_keys_each(tui_key_fn fn, void *ctx);
/* "all", "lists", "lists but tensor", "graph watch" */
void tui_key_panes(const struct tui_key *key, char *out, size_t size);

const char *tui_pane_name(enum tui_pane_id pane);
/* By "graph", "watch", ... GD_ENOTFOUND names what there is. */
int tui_pane_find(const char *name, enum tui_pane_id *ret, struct gd_err *err);

#endif
