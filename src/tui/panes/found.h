// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The nodes of a graph that a search or filter matches: a set of nodes with counts per scope, so
 * that showing a tree of them or finding the next one costs what is shown, not the size of the
 * graph. The query consists of words that must all match: "type:relu", "graph:main", "kind:weight";
 * "/attn.*MatMul/" is a regular expression on names; anything else is a part of the name. Case is
 * ignored.
 */
#ifndef GD_TUI_FOUND_H
#define GD_TUI_FOUND_H

#include "engine/graph/graph.h"

struct tui_found;

/* within: search only these nodes (of the same graph); NULL: all. The graph is borrowed; make a new
 * set after it has grown. The set is complete once tui_found_work returns false. GD_EINVAL: unknown
 * kind or invalid regular expression, with the accepted form in err; GD_ENOMEM. */
int tui_found_words(const struct gd_graph *graph, const char *words, const struct tui_found *within,
                    struct tui_found **ret, struct gd_err *err);
/* Regular expressions are slow on a large graph: examines the next part of it. Returns true while
 * there is more; until then no other function may be called on the set. */
bool tui_found_work(struct tui_found *found);
void tui_found_free(struct tui_found *found);

uint32_t tui_found_count(const struct tui_found *found);
bool tui_found_node(const struct tui_found *found, gd_node_id node);
uint32_t tui_found_below(const struct tui_found *found, gd_scope_id scope);

/* The next or previous match in the order of the tree's rows (scopes before nodes), wrapping
 * around: relative to a node, or to the row of `scope` when node is GD_NO_NODE. The cost is
 * proportional to the siblings on the way. GD_NO_NODE: no match. */
gd_node_id tui_found_next(const struct tui_found *found, gd_scope_id scope, gd_node_id node);
gd_node_id tui_found_previous(const struct tui_found *found, gd_scope_id scope, gd_node_id node);

#endif
