// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What is around a node or in a scope, for a picture: boxes, which are nodes and folded scopes, and
 * the edges between them. A scope is one box unless it contains the centre or is open. Bounded,
 * however large the graph is: what was left out is counted in boxes of its own.
 */
#ifndef GD_ENGINE_NEARBY_H
#define GD_ENGINE_NEARBY_H

#include "engine/graph/graph.h"

#define GD_NEARBY_BOXES 96
#define GD_NEARBY_EDGES 384

enum gd_nearby_kind { GD_NEARBY_NODE, GD_NEARBY_SCOPE, GD_NEARBY_MORE };
struct gd_nearby_box {
    enum gd_nearby_kind kind;
    gd_node_id node;   /* of a node */
    gd_scope_id scope; /* of a scope */
    uint32_t more;     /* GD_NEARBY_MORE: neighbours that have no box */
    int distance;      /* from the centre, in edges */
};
struct gd_nearby_edge { /* in the order of the consumer's operands */
    int from, to;       /* boxes */
    uint32_t slot;      /* of the producer; 0 for a scope */
    bool control;
};
struct gd_nearby {
    struct gd_nearby_box box[GD_NEARBY_BOXES]; /* the centre first, unless it is an open scope */
    int box_count;
    struct gd_nearby_edge edge[GD_NEARBY_EDGES];
    int edge_count;
    bool cut; /* boxes or edges are missing beyond what the boxes of kind MORE count */
};
struct gd_nearby_wish {
    gd_node_id node; /* the centre; GD_NO_NODE: the scope's contents instead */
    gd_scope_id scope;
    int depth;  /* edges away from it; 1: its neighbours */
    bool whole; /* nothing is folded */
    /* Whether a scope is opened (1) or folded (-1) by the user; 0: neither. */
    int (*choice)(const void *ctx, gd_scope_id scope);
    const void *ctx;
};

/* GD_ENOTFOUND: the node or scope is gone, or the scope is empty. */
int gd_nearby_collect(struct gd_graph *graph, const struct gd_nearby_wish *wish,
                      struct gd_nearby *ret, struct gd_err *err);
/* The box that shows a node; -1: none. */
int gd_nearby_find(const struct gd_graph *graph, const struct gd_nearby_wish *wish,
                   const struct gd_nearby *nearby, gd_node_id node);

#endif
