// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Trees: inputs of a node, its consumers, and the scopes.
 */
#ifndef GD_REPL_TREE_H
#define GD_REPL_TREE_H

#include "repl/core/command.h"

#define TREE_MAX_DEPTH 100

struct tree_options {
    bool outputs;  /* consumers instead of producers */
    int64_t depth; /* levels below the node, 1 ... TREE_MAX_DEPTH */
    bool control;  /* include control edges */
    bool all;      /* no limit of lines */
};
/* Each node is expanded once and marked where it appears again, so cycles end. GD_ENOMEM. */
int tree_show_edges(struct command_call *call, gd_node_id node, const struct tree_options *options,
                    struct gd_err *err);

/* The node's inputs, or its consumers. Returns their number. */
uint32_t tree_edges(const struct gd_graph *graph, gd_node_id node, bool outputs,
                    const struct gd_edge **ret);

/* Scopes below `scope` with their node counts. */
void tree_show_scopes(struct command_call *call, gd_scope_id scope, int64_t depth, bool all);

#endif
