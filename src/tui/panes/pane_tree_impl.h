// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Shared by the files of the graph tree's pane: rows, search and filter.
 */
#ifndef GD_TUI_PANE_TREE_IMPL_H
#define GD_TUI_PANE_TREE_IMPL_H

#include "tui/tui_impl.h"

/* pane_tree.c */
/* Moves the cursor to a visible node or scope; false: it is not visible. */
bool tree_go_to_row(struct tree_pane *pane, const struct tui_tree_row *row);
bool tree_go_to_node(struct tree_pane *pane, gd_node_id node);

/* pane_tree_row.c */
void tree_row_draw(struct tui *tui, const struct tui_tree_row *row, int y,
                   const struct draw_rect *rect, bool cursor);

/* pane_tree_tick.c: rows ticked for the form of a watchpoint. */
void tree_tick(struct tui *tui, const struct tui_tree_row *row); /* or takes the tick away */
bool tree_is_ticked(const struct tree_pane *pane, const struct tui_tree_row *row);
size_t tree_tick_count(struct tui *tui);
void tree_ticks_clear(struct tui *tui);
/* A selector of the ticked rows, or of the row under the cursor while the tree has the keyboard.
 * false: neither. */
bool tree_ticks_selector(struct tui *tui, struct gd_buf *out);
/* A node's name as a selector, quoted if it could be read as something else; GD_NO_NODE: none. */
void tree_selector_of_node(const struct gd_session *session, gd_node_id node, struct gd_buf *out);

/* pane_tree_types.c: the list of types while "type:" is typed in the filter. */
bool tree_types_shown(const struct tree_pane *pane);
void tree_types_draw(struct tui *tui, const struct draw_rect *rect);
bool tree_types_key(struct tui *tui, int key); /* true: taken */

/* pane_tree_find.c: the typed text is looked up once for all keys read so far, before the next
 * picture or request. */
void tree_find_apply(struct tui *tui);
void tree_find_again(struct tree_pane *pane); /* the graph was replaced or has grown */
bool tree_find_key(struct tui *tui, int key);
void tree_find_request(struct tui *tui, enum tui_request request);
void tree_find_clear_filter(struct tui *tui);
void tree_find_types(struct tui *tui);            /* types "type:" into the filter */
int tree_find_rows(const struct tree_pane *pane); /* of the filter line: 0 or 1 */
void tree_find_draw(struct tui *tui, int row, int col, int cols, bool focused);
void tree_find_free(struct tree_pane *pane);

#endif
