// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The parts of a training, in the order in which people look for them. Lists of nodes, and the
 * scopes of the root, are in this order: the training itself comes before everything that serves
 * it.
 */
#ifndef GD_ENGINE_PART_H
#define GD_ENGINE_PART_H

#include <stddef.h>

#include "engine/graph/graph.h"

enum gd_part {
    GD_PART_MODEL,     /* below a scope of the root that holds weights */
    GD_PART_OUTSIDE,   /* the loss, and what else runs outside of modules */
    GD_PART_GRADIENT,  /* of a parameter */
    GD_PART_OPTIMIZER, /* with the clipping of gradients */
    GD_PART_BACKWARD,
    GD_PART_DATA, /* loading, and tensors from outside */
    GD_PART_EVALUATION,
    GD_PART_COMPILED,
    GD_PART_COUNT
};

enum gd_part gd_graph_part(const struct gd_graph *graph, gd_node_id node);
enum gd_part gd_graph_part_of_scope(const struct gd_graph *graph, gd_scope_id scope);
/* Sorts by part; within one the order stays. GD_ENOMEM */
int gd_graph_sort_by_part(const struct gd_graph *graph, gd_node_id *nodes, size_t count,
                          struct gd_err *err);

/* The attribute with the number of a node's micro-batch, "2"; "none": it runs outside of the passes
 * of the training. Without it, the node belongs to all, or that is unknown. */
#define GD_MICRO_BATCH "micro_batch"
/* The number of a node's micro-batch; 0: it has none. */
int gd_node_micro_batch(const struct gd_node_info *info);
/* The largest number of all nodes. */
int gd_graph_micro_batches(const struct gd_graph *graph);

#endif
