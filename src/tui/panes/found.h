// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Which nodes of a graph a search or a filter finds: a set of nodes with their number below every
 * scope, so that a tree of them, or the next of them, costs what is shown and not what the graph
 * holds. What is wanted is words, all of which must fit: "type:relu", "graph:main", "kind:weight",
 * and "/attn.*MatMul/" is a regular expression for names, anything else is a part of the name; case
 * is ignored.
 */
#ifndef GD_TUI_FOUND_H
#define GD_TUI_FOUND_H

#include "engine/graph/graph.h"

struct tui_found;

/* within: only of those (of the same graph); NULL: of all.
 * GD_EINVAL: a word names no kind or is no regular expression: what would be right is in err;
 * GD_ENOMEM. It is complete when tui_found_work says so. The graph is borrowed; after it has grown
 * a new set must be made. */
int tui_found_words(const struct gd_graph *graph, const char *words, const struct tui_found *within,
                    struct tui_found **ret, struct gd_err *err);
/* Regular expressions take long in a large graph: looks at the next part of it; true: call again.
 * Until then nothing else may be asked. */
bool tui_found_work(struct tui_found *found);
void tui_found_free(struct tui_found *found);

uint32_t tui_found_count(const struct tui_found *found);
bool tui_found_node(const struct tui_found *found, gd_node_id node);
uint32_t tui_found_below(const struct tui_found *found, gd_scope_id scope);

/* In the order of the tree's rows (scopes before nodes), around its end: the one behind or before a
 * node, or behind or before the row of a scope when node is GD_NO_NODE. Costs the siblings on the
 * way. GD_NO_NODE: nothing is found. */
gd_node_id tui_found_next(const struct tui_found *found, gd_scope_id scope, gd_node_id node);
gd_node_id tui_found_previous(const struct tui_found *found, gd_scope_id scope, gd_node_id node);

#endif
