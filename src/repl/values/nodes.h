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
    bool failed; /* out of memory: the list is incomplete */
};

void node_list_deinit(struct node_list *list);
/* A gd_node_fn: ctx is the list. */
int node_list_add(void *ctx, gd_node_id node);

/* All nodes that the text selects: for a plain word, nodes whose names contain it; otherwise the
 * text is a selector. GD_EINVAL. No match is an empty list. */
int nodes_search(struct command_call *call, const char *text, struct node_list *ret,
                 struct gd_err *err);
/* The nodes of a selector. Errors of gd_selector_resolve. */
int nodes_select(struct command_call *call, const char *text, struct node_list *ret,
                 struct gd_err *err);

/* GD_EINVAL: the node never runs, as it is a parameter; the text names the nodes that read and
 * update it. */
int nodes_must_run(struct command_call *call, gd_node_id node, struct gd_err *err);
/* The same if it is true of all nodes of a selector. */
int nodes_must_run_any(struct command_call *call, const char *text, struct gd_err *err);

/* The operator where a module begins, or ends: of a scope, or of the modules of a class the one
 * that runs next. GD_ENOTFOUND: no module is meant. GD_ENODATA: none of its operators has run yet.
 * GD_EAMBIGUOUS. */
int nodes_find_module(struct command_call *call, const char *text, bool last, gd_node_id *ret,
                      struct gd_err *err);

/* Prints a table of at most NODES_SHOWN rows unless all; `again` is the command that shows all.
 * Records "nodes": {"nodes":[...],"count":N,"more":M}. */
void nodes_show(struct command_call *call, const struct node_list *list, bool all,
                const char *again);

/* The scope of that name, "" the root. GD_ENOTFOUND, GD_EAMBIGUOUS. */
int nodes_find_scope(struct command_call *call, const char *text, gd_scope_id *ret,
                     struct gd_err *err);

#endif
