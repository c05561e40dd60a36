// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the files of the tree's pane share: its rows, its search and its filter bar.
 */
#ifndef GD_TUI_PANE_TREE_IMPL_H
#define GD_TUI_PANE_TREE_IMPL_H

#include "tui/tui_impl.h"

/* pane_tree.c */
/* The cursor and the rows around it, on a node or a scope that is shown; false: it is not. */
bool tree_go_to_row(struct tree_pane *pane, const struct tui_tree_row *row);
bool tree_go_to_node(struct tree_pane *pane, gd_node_id node);

/* pane_tree_row.c */
void tree_row_draw(struct tui *tui, const struct tui_tree_row *row, int y,
                   const struct draw_rect *rect, bool cursor);

/* pane_tree_find.c: what was typed is looked up once for all keys that were read, before the next
 * picture or the next other request. */
void tree_find_apply(struct tui *tui);
void tree_find_again(struct tree_pane *pane); /* the graph is another one, or has grown */
bool tree_find_key(struct tui *tui, int key);
void tree_find_request(struct tui *tui, enum tui_request request);
void tree_find_clear_filter(struct tui *tui);
int tree_find_rows(const struct tree_pane *pane); /* of the bar: 0 or 1 */
void tree_find_draw(struct tui *tui, int row, int col, int cols, bool focused);
void tree_find_free(struct tree_pane *pane);

#endif
