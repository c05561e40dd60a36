// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The detail area below a list: shows in full what its narrow rows leave out of the current row.
 */
#ifndef GD_TUI_DETAIL_H
#define GD_TUI_DETAIL_H

#include "tui/list.h"

struct tui;

/* Draws a list below a heading, if there is room for one. Returns the place of the detail area
 * below it, which is empty if the list needs all rows. */
struct draw_rect tui_list_and_detail(struct tui *tui, struct tui_list *list,
                                     const struct tui_list_ops *ops, const struct draw_rect *rect,
                                     void (*heading)(struct tui *tui, const struct draw_rect *rect),
                                     bool focused);
/* Draws lines of text, each wrapped at blanks; clips what does not fit. */
void tui_detail_draw(struct tui *tui, const struct draw_rect *rect, const char *text);

/* Draws a text over as many rows as it needs, from row `at` of the pane on; returns the next
 * row. */
int tui_draw_folded(struct tui *tui, const struct draw_rect *rect, int at, enum draw_style style,
                    const char *text);
/* Draws "/text" into the last row of the pane, with the cursor after it. */
void tui_draw_typed(struct tui *tui, const struct draw_rect *rect, const char *text);

#endif
