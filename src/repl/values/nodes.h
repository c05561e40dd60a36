// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Lists of nodes: collecting them from searches, and showing them as a table or as records.
 */
#ifndef GD_REPL_NODES_H
#define GD_REPL_NODES_H

#include "repl/core/command.h"

#define NODES_SHOWN 40 /* rows of a table unless all are asked for */

struct node_list {
    gd_node_id *node; /* owned */
    size_t count;
    size_t room;
    bool failed; /* memory ran out: the list is not whole */
};

void node_list_deinit(struct node_list *list);
/* A gd_node_fn: ctx is the list. */
int node_list_add(void *ctx, gd_node_id node);

/* Everything that the text selects: with a plain word, nodes whose names contain it; otherwise as a
 * selector. GD_EINVAL. A word that nothing contains gives an empty list. */
int nodes_search(struct command_call *call, const char *text, struct node_list *ret,
                 struct gd_err *err);
/* What a selector selects. Errors of gd_selector_resolve. */
int nodes_select(struct command_call *call, const char *text, struct node_list *ret,
                 struct gd_err *err);

/* GD_EINVAL: no run ever comes to the node, a parameter; the text names the nodes that read and
 * update it. */
int nodes_must_run(struct command_call *call, gd_node_id node, struct gd_err *err);
/* The same when that is so of all nodes that a selector selects now. */
int nodes_must_run_any(struct command_call *call, const char *text, struct gd_err *err);

/* A table, at most NODES_SHOWN rows unless all; `again` is what to type to see all. In JSON the
 * record "nodes": {"nodes":[...],"count":N,"more":M}. */
void nodes_show(struct command_call *call, const struct node_list *list, bool all,
                const char *again);

/* The scope of that name, "" the root. GD_ENOTFOUND, GD_EAMBIGUOUS. */
int nodes_find_scope(struct command_call *call, const char *text, gd_scope_id *ret,
                     struct gd_err *err);

#endif
