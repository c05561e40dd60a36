// SPDX-License-Identifier: GPL-3.0-or-later
/* The graph pane: its state, which is part of struct tui, and what other panes ask it. */
#ifndef GD_TUI_PANE_TREE_H
#define GD_TUI_PANE_TREE_H

#include "tui/panes/found.h"
#include "tui/panes/tree.h"
#include "tui/panes/tree_hits.h"

struct tui;

struct tree_line { /* a search or a filter, and its progress */
    char text[128];
    bool typing;
    bool stale;             /* text or graph have changed since the last lookup */
    struct tui_found *in;   /* NULL: none */
    struct tui_found *next; /* replaces `in` when complete; NULL: none */
    bool goes;              /* a search: moves the cursor to the match when complete */
    char why[96];           /* why the lookup failed; "": it did not */
};

#define TREE_MAX_TICKS 64

struct tree_tick {
    bool is_scope;
    uint32_t id; /* of the node or scope */
};

struct tree_pane {
    struct tui_tree *tree;
    struct tree_line filter, search;
    struct tui_tree_row from; /* the row where the current search began */
    struct tree_hits hits;
    struct gd_session *session; /* whose graph it is; only compared */
    uint64_t generation;
    bool any; /* there are rows, so top and cursor are valid */
    struct tui_tree_pos top, cursor;
    uint64_t stop_sequence; /* the stop that the cursor was moved to */
    gd_node_id current;     /* the current node that the cursor was moved to */
    int rows;               /* of the pane at the last draw */
    struct tree_tick tick[TREE_MAX_TICKS];
    size_t ticks;
    int type; /* row of the list of types under the cursor; -1: none was chosen */
};

/* Follows the current session, its graph and its stops. */
void tui_tree_update(struct tui *tui);
gd_node_id tui_cursor_node(struct tui *tui); /* GD_NO_NODE: on a scope, or no graph */
bool tui_cursor_row(struct tui *tui, struct tui_tree_row *ret);
void tui_tree_show(struct tui *tui,
                   gd_node_id node); /* moves the cursor to it; ends a filter that hides it */

#endif
