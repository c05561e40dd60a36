// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the files of the node's pane share: its lines, and where they come from.
 */
#ifndef GD_TUI_PANE_NODE_IMPL_H
#define GD_TUI_PANE_NODE_IMPL_H

#include "tui/tui_impl.h"

enum node_item_kind {
    NODE_TEXT,   /* of the node itself */
    NODE_OUTPUT, /* slot */
    NODE_EDGE,   /* Enter follows it: node, slot */
    NODE_WATCH,  /* number */
    NODE_HIT,    /* number */
};
struct node_item {
    enum node_item_kind kind;
    gd_node_id node; /* GD_NO_NODE on a scope */
    uint32_t slot;
    bool has_slot;
    uint64_t number;
};

struct node_line {  /* one row; an item that is long has several */
    size_t at, len; /* in the text */
    size_t item;
    bool continues; /* the row above */
    enum draw_style style;
};

#define NODE_PLACES 64 /* kept of the way that was gone */

struct node_view {
    struct tui_list list;
    struct gd_buf text;
    struct node_line *line;
    size_t lines, line_capacity;
    struct node_item *item;
    size_t items, item_capacity;
    int cols;          /* what lines are folded to */
    gd_node_id node;   /* whose cursor it is */
    gd_scope_id scope; /* likewise */
    const struct gd_session *session;
    struct { /* where Enter led away from, the latest last */
        gd_node_id node[NODE_PLACES];
        size_t count;
        const struct gd_session *session; /* only compared; whose nodes they are */
        uint64_t generation;
    } places;
    struct { /* hits of this stop at the node, counted when one is new */
        uint64_t seen, sequence, taken;
        gd_node_id node;
        uint64_t number[8];
        size_t count;
    } hits;
};

/* pane_node_text.c */
void node_text_build(struct tui *tui, struct node_view *view, int cols);

#endif
