// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The foot of a list: what its narrow rows leave out of the line under the cursor, in whole.
 */
#ifndef GD_TUI_DETAIL_H
#define GD_TUI_DETAIL_H

#include "tui/draw.h"

struct tui;

/* Takes rows from the lower end of `rect` and returns them; none where the list needs them all. */
struct draw_rect tui_detail_take(struct draw_rect *rect);
/* Lines of text, each folded at blanks; what does not fit is cut off. */
void tui_detail_draw(struct tui *tui, const struct draw_rect *rect, const char *text);

#endif
