// SPDX-License-Identifier: GPL-3.0-or-later
/* Shared by catalog.c, which fills a catalog, and catalog_read.c, which sorts it and looks values
 * up. */
#ifndef GD_DUMP_CATALOG_IMPL_H
#define GD_DUMP_CATALOG_IMPL_H

#include "base/arena.h"
#include "dump/catalog.h"
#include "engine/hash_index.h"

struct kept_reason { /* why a node was not dumped */
    gd_node_id node;
    const char *why;
};

struct graph_step { /* a step of one of several graphs */
    uint32_t subgraph;
    int64_t step;
};

struct kept_value {
    struct gd_catalog_value of;
    uint32_t order;  /* of the node: execution order starting at 1; 0 for nodes that do not run */
    uint32_t number; /* order of adding */
};

struct gd_catalog {
    int rank;
    const char *where;
    struct gd_graph *graph;
    bool owns_graph, keep;
    struct gd_memory *memory; /* NULL: none */
    struct gd_peer peer;
    struct gd_time_report *times; /* NULL: none */
    struct gd_timeline *timeline; /* NULL: none */
    struct gd_arena arena;
    struct kept_value *values;
    size_t value_count, value_cap;
    const struct gd_shape **shapes; /* distinct shapes of values */
    size_t shape_count, shape_cap;
    struct gd_hash_index shape_lookup;
    struct gd_catalog_step *steps;
    size_t step_count, step_cap;
    struct graph_step *graph_steps; /* sorted; empty when there is only one graph */
    size_t graph_step_count;
    struct kept_reason *reasons;
    size_t reason_count, reason_cap;
    struct gd_catalog_scalar *scalars;
    size_t scalar_count, scalar_cap;
    struct gd_catalog_event *events;
    size_t event_count, event_cap;
    struct gd_catalog_fact *facts;
    size_t fact_count, fact_cap;
};

/* Commits the graph and sorts everything for lookup. Nothing may be added afterwards. */
int gd_catalog_sort(struct gd_catalog *catalog, struct gd_err *err);

#endif
