// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The nodes of one graph of a MindSpore dump, found by the names that files give them: the escaped
 * full name (2.3 and later), its last part (before), a parameter's own name. A graph's "...-op1"
 * may be "...-op0" in file names (2.10): they are the same operator if each has only one of the
 * type in that scope. A name not in the graph becomes a node of its own. Private to the readers of
 * MindSpore's formats.
 */
#ifndef GD_DUMP_MS_NODES_H
#define GD_DUMP_MS_NODES_H

#include "base/arena.h"
#include "engine/graph/graph.h"
#include "engine/hash_index.h"

/* Plus a number: a node not known yet; ms_nodes_settle decides when all names have been seen. */
#define MS_WANTED UINT32_C(0x80000000)

struct ms_wanted { /* a name in files that the graph does not have */
    const char *type, *name;
    gd_node_id node; /* once settled */
    bool joined;     /* to a node with another number */
};

struct ms_nodes {
    struct gd_graph *graph;
    uint32_t subgraph;
    struct gd_hash_index lookup;  /* all spellings */
    struct gd_hash_index without; /* the same without the trailing number */
    struct ms_wanted *wanted;
    uint32_t wanted_count;
    size_t wanted_cap;
    struct gd_hash_index wanted_lookup; /* by name */
    uint8_t *taken;                     /* per node: a file has exactly its name */
    uint32_t taken_count;
    struct gd_arena arena;
};

/* Of a subgraph, which is selected for new nodes. */
int ms_nodes_begin(struct gd_graph *graph, const char *subgraph, struct ms_nodes *ret,
                   struct gd_err *err);
void ms_nodes_end(struct ms_nodes *nodes);
/* Registers a node that was added to the subgraph. */
int ms_nodes_add(struct ms_nodes *nodes, gd_node_id node, struct gd_err *err);

/* The node for a file's TYPE and NAME. GD_NO_NODE: none. */
gd_node_id ms_nodes_find(struct ms_nodes *nodes, const char *type, const char *name);
/* The same, but adds a missing node. */
int ms_nodes_get(struct ms_nodes *nodes, const char *type, const char *name, gd_node_id *ret,
                 struct gd_err *err);

/* The same for a file name; a missing node is MS_WANTED plus a number until all names have been
 * seen. */
int ms_nodes_want(struct ms_nodes *nodes, const char *type, const char *name, gd_node_id *ret,
                  struct gd_err *err);
/* Joins or adds all wanted nodes. ms_nodes_wanted describes each by its number, before and
 * after. */
int ms_nodes_settle(struct ms_nodes *nodes, struct gd_err *err);
const struct ms_wanted *ms_nodes_wanted(const struct ms_nodes *nodes, gd_node_id node);

#endif
