// SPDX-License-Identifier: GPL-3.0-or-later
/* The outputs and labels of a training, found at the loss: the inputs of the node that computes it.
 */
#ifndef GD_GRAPH_LOSS_PAIR_H
#define GD_GRAPH_LOSS_PAIR_H

#include "base/metric.h"
#include "engine/graph/graph.h"

struct gd_loss_pair {
    gd_node_id loss;
    struct gd_edge outputs, labels;
    enum gd_metric_form form;
};

/* Fills in up to `most` losses in the order of execution, without those of an evaluation, and
 * returns how many there are. Nodes whose inputs are unknown do not count. */
size_t gd_loss_pairs(const struct gd_graph *graph, struct gd_loss_pair *ret, size_t most);

#endif
