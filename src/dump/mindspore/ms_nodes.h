// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The nodes of one graph of a MindSpore dump, found by what files call them: the full name escaped
 * (2.3 and later), its last part (before), a parameter's own name. A name that the graph lacks
 * becomes a node of its own. Private to the readers of MindSpore's formats.
 */
#ifndef GD_DUMP_MS_NODES_H
#define GD_DUMP_MS_NODES_H

#include "dump/lookup.h"
#include "engine/graph/graph.h"

struct ms_nodes {
    struct gd_graph *graph;
    uint32_t subgraph;
    struct gd_lookup lookup; /* of all spellings */
    uint32_t joined, made;   /* by scope alone; because the graph has no such node */
};

/* Of a subgraph, which is selected for new nodes. */
int ms_nodes_begin(struct gd_graph *graph, const char *subgraph, struct ms_nodes *ret,
                   struct gd_err *err);
void ms_nodes_end(struct ms_nodes *nodes);
/* A node that was added to the subgraph. */
int ms_nodes_add(struct ms_nodes *nodes, gd_node_id node, struct gd_err *err);

/* The node that a file's TYPE and NAME mean. GD_NO_NODE: none. */
gd_node_id ms_nodes_find(struct ms_nodes *nodes, const char *type, const char *name);
/* The same; one that is not there is made. */
int ms_nodes_get(struct ms_nodes *nodes, const char *type, const char *name, gd_node_id *ret,
                 struct gd_err *err);

#endif
