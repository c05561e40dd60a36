// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The graph as rows that open and fold: scopes first, then the nodes that lie directly in them.
 *
 * Only open scopes are laid out, each as a list of its children; a place is a (scope, index) pair,
 * and going to the next or the previous row costs the same in a graph of any size. The graph is
 * borrowed.
 */
#ifndef GD_TUI_TREE_H
#define GD_TUI_TREE_H

#include "engine/graph/graph.h"
#include "tui/panes/found.h"

struct tui_tree;

struct tui_tree_pos { /* a row; valid until the next tui_tree_set_graph; see tui_tree_settle */
    gd_scope_id in;
    uint32_t index;
};

struct tui_tree_row {
    bool is_scope;
    gd_scope_id scope; /* of a scope row */
    gd_node_id node;   /* of a node row */
    int depth;         /* 0 at the top */
    bool open;         /* a scope whose rows are shown */
    const char *label; /* last component of the name */
    uint32_t count;    /* of a scope: nodes below it, those found when there is a filter */
};

int tui_tree_create(struct tui_tree **ret, struct gd_err *err);
void tui_tree_destroy(struct tui_tree *tree);

/* Another graph, or the same one grown. What was open stays open when `same`; positions that the
 * caller holds must be found again (reveal). GD_ENOMEM. */
int tui_tree_set_graph(struct tui_tree *tree, const struct gd_graph *graph, bool same,
                       struct gd_err *err);

/* Only what is found, and the scopes around it, opened (borrowed; NULL: all rows again, opened and
 * folded as before). Positions that the caller holds must be found again. A set_graph ends it, too.
 * GD_ENOMEM: all rows. */
int tui_tree_filter(struct tui_tree *tree, const struct tui_found *found, struct gd_err *err);

bool tui_tree_first(const struct tui_tree *tree, struct tui_tree_pos *pos);
bool tui_tree_last(const struct tui_tree *tree, struct tui_tree_pos *pos);
bool tui_tree_next(const struct tui_tree *tree, struct tui_tree_pos *pos); /* false: at the end */
bool tui_tree_previous(const struct tui_tree *tree, struct tui_tree_pos *pos);
bool tui_tree_up(const struct tui_tree *tree,
                 struct tui_tree_pos *pos); /* to the scope it lies in */
/* A row that a fold has hidden becomes the outermost folded scope that it lies in. */
void tui_tree_settle(const struct tui_tree *tree, struct tui_tree_pos *pos);
bool tui_tree_get(const struct tui_tree *tree, const struct tui_tree_pos *pos,
                  struct tui_tree_row *ret);

/* Opens or folds the scope at pos; nothing happens on a node. */
int tui_tree_open(struct tui_tree *tree, const struct tui_tree_pos *pos, bool open,
                  struct gd_err *err);
/* Opens what a node (or a scope) lies in and gives its row. GD_ENOTFOUND: also when a filter hides
 * it; GD_ENOMEM. */
int tui_tree_reveal(struct tui_tree *tree, gd_node_id node, struct tui_tree_pos *ret,
                    struct gd_err *err);
int tui_tree_reveal_scope(struct tui_tree *tree, gd_scope_id scope, struct tui_tree_pos *ret,
                          struct gd_err *err);

#endif
