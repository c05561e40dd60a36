// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The nodes of one graph of a MindSpore dump, found by what files call them: the full name escaped
 * (2.3 and later), its last part (before), a parameter's own name. What a graph file calls
 * "...-op1" may be "...-op0" in the names of the files (2.10): that is the same operator where both
 * have one of the type in that scope. A name that the graph lacks becomes a node of its own.
 * Private to the readers of MindSpore's formats.
 */
#ifndef GD_DUMP_MS_NODES_H
#define GD_DUMP_MS_NODES_H

#include "base/arena.h"
#include "dump/hash_index.h"
#include "engine/graph/graph.h"

/* A node that is not known yet: ms_nodes_settle decides when all names have been seen. */
#define MS_WANTED UINT32_C(0x80000000)

struct ms_wanted { /* what files name and the graph has under no such name */
    const char *type, *name;
    gd_node_id node; /* when it is settled */
    bool joined;     /* to a node whose number is another */
};

struct ms_nodes {
    struct gd_graph *graph;
    uint32_t subgraph;
    struct gd_hash_index lookup;  /* of all spellings */
    struct gd_hash_index without; /* the same, without the number at their ends */
    struct ms_wanted *wanted;
    uint32_t wanted_count;
    size_t wanted_cap;
    struct gd_hash_index wanted_lookup; /* by name */
    uint8_t *taken;                     /* by node: a file has exactly its name */
    uint32_t taken_count;
    struct gd_arena arena;
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

/* The same for the name of a file; one that is not there is MS_WANTED with a number until all have
 * been seen. */
int ms_nodes_want(struct ms_nodes *nodes, const char *type, const char *name, gd_node_id *ret,
                  struct gd_err *err);
/* Joins or makes all that are wanted; ms_nodes_wanted tells of each, by its number, until then and
 * after. */
int ms_nodes_settle(struct ms_nodes *nodes, struct gd_err *err);
const struct ms_wanted *ms_nodes_wanted(const struct ms_nodes *nodes, gd_node_id node);

#endif
