// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The graph as rows that open and fold: scopes first, then the nodes directly in them.
 *
 * Only open scopes are laid out, each as a list of its children. A position is a (scope, index)
 * pair, and moving to the next or previous row costs the same in a graph of any size. The graph is
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
    uint32_t count;    /* for a scope: nodes below it, or matches if there is a filter */
};

int tui_tree_create(struct tui_tree **ret, struct gd_err *err);
void tui_tree_destroy(struct tui_tree *tree);

/* Shows another graph, or the same one after it has grown (`same`: open scopes stay open). The
 * caller's positions become invalid; find them again with tui_tree_reveal. GD_ENOMEM. */
int tui_tree_set_graph(struct tui_tree *tree, const struct gd_graph *graph, bool same);

/* Shows only the matches and the scopes around them, open (borrowed; NULL: all rows, opened and
 * folded as before). The caller's positions become invalid. tui_tree_set_graph also ends the
 * filter. GD_ENOMEM: all rows are shown. */
int tui_tree_filter(struct tui_tree *tree, const struct tui_found *found);

bool tui_tree_first(const struct tui_tree *tree, struct tui_tree_pos *pos);
bool tui_tree_last(const struct tui_tree *tree, struct tui_tree_pos *pos);
bool tui_tree_next(const struct tui_tree *tree, struct tui_tree_pos *pos); /* false: at the end */
bool tui_tree_previous(const struct tui_tree *tree, struct tui_tree_pos *pos);
bool tui_tree_up(const struct tui_tree *tree,
                 struct tui_tree_pos *pos); /* to the enclosing scope */
/* Replaces a row hidden by folding by the outermost folded scope around it. */
void tui_tree_settle(const struct tui_tree *tree, struct tui_tree_pos *pos);
bool tui_tree_get(const struct tui_tree *tree, const struct tui_tree_pos *pos,
                  struct tui_tree_row *ret);

/* Opens or folds the scope at pos; does nothing on a node. */
int tui_tree_open(struct tui_tree *tree, const struct tui_tree_pos *pos, bool open);
/* Opens the scopes around a node (or scope) and returns its row. GD_ENOTFOUND: no such node, or a
 * filter hides it; GD_ENOMEM. */
int tui_tree_reveal(struct tui_tree *tree, gd_node_id node, struct tui_tree_pos *ret);
int tui_tree_reveal_scope(struct tui_tree *tree, gd_scope_id scope, struct tui_tree_pos *ret);

#endif
