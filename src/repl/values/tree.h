// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Trees on the screen and in records: what feeds a node, what it feeds, and the scopes.
 */
#ifndef GD_REPL_TREE_H
#define GD_REPL_TREE_H

#include "repl/core/command.h"

#define TREE_MAX_DEPTH 100

struct tree_options {
    bool outputs;  /* consumers instead of producers */
    int64_t depth; /* levels below the node, 1 ... TREE_MAX_DEPTH */
    bool control;  /* control edges, too */
    bool all;      /* no limit of lines */
};
/* Each node is opened once: where it comes again it is marked, so a cycle ends. GD_ENOMEM. */
int tree_show_edges(struct command_call *call, gd_node_id node, const struct tree_options *options,
                    struct gd_err *err);

/* Scopes below `scope` with their node counts. */
int tree_show_scopes(struct command_call *call, gd_scope_id scope, int64_t depth, bool all,
                     struct gd_err *err);

#endif
