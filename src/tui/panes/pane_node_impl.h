// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Shared by the files of the node pane: its lines, and what each line refers to.
 */
#ifndef GD_TUI_PANE_NODE_IMPL_H
#define GD_TUI_PANE_NODE_IMPL_H

#include "repl/core/await.h"
#include "tui/tui_impl.h"

#define TUI_MAX_SLOTS 8  /* outputs of a node whose statistics are shown */
#define TUI_BINS      16 /* of a histogram */

struct stats_request {
    struct await await;
    struct tui *tui; /* not to be read once the panes have left the answer */
    uint32_t slot;
    uint64_t serial;
};

struct slot_stats {
    enum { STATS_NONE = 0, STATS_ASKED, STATS_HERE, STATS_FAILED } state;
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_stats stats;
    int64_t step; /* of the value; -1: unknown */
    char why[120];
    int histogram; /* one of the states above */
    uint64_t bin[TUI_BINS];
    bool sampled; /* the histogram uses every Nth element only */
};

struct node_stats {
    struct gd_session *session; /* source of the statistics */
    gd_node_id node;
    uint64_t stop_sequence;
    uint64_t serial; /* changes with the node: late answers with another serial are dropped */
    struct slot_stats slot[TUI_MAX_SLOTS];
    struct stats_request *awaited[TUI_MAX_SLOTS];
};

enum node_item_kind {
    NODE_TEXT,   /* about the node itself */
    NODE_OUTPUT, /* with slot */
    NODE_EDGE,   /* with node and slot; Enter follows it */
    NODE_WATCH,  /* with number */
    NODE_HIT,    /* with number */
};
struct node_item {
    enum node_item_kind kind;
    gd_node_id node; /* GD_NO_NODE for a scope */
    uint32_t slot;
    bool has_slot;
    uint64_t number;
};

struct node_line {  /* one row; a long item has several */
    size_t at, len; /* a range of the text */
    size_t item;
    bool continues; /* belongs to the same item as the previous row */
    enum draw_style style;
};

#define NODE_PLACES 64 /* length of the way back */

struct node_view { /* the pane's state */
    struct tui_list list;
    struct node_stats stats;
    struct gd_buf text;
    struct node_line *line;
    size_t lines, line_capacity;
    struct node_item *item;
    size_t items, item_capacity;
    int cols;          /* width that lines are wrapped to */
    gd_node_id node;   /* the node that the cursor belongs to */
    gd_scope_id scope; /* or the scope */
    const struct gd_session *session;
    struct { /* the way back: where Enter was pressed, latest last */
        gd_node_id node[NODE_PLACES];
        size_t count;
        const struct gd_session *session; /* of those nodes; only compared */
        uint64_t generation;
    } places;
    struct { /* the node's hits at this stop; recounted when there is a new hit */
        uint64_t seen, sequence, taken;
        gd_node_id node;
        uint64_t number[8];
        size_t count;
    } hits;
};

/* pane_node_text.c */
void node_text_build(struct tui *tui, struct node_view *view, int cols);

#endif
