// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Where the panes stand: the named layouts, for screens of any size from 40x10 on. Below 80x24 one
 * pane at a time. From 132 columns and 43 rows on a layout shows more panes.
 */
#ifndef GD_TUI_LAYOUT_H
#define GD_TUI_LAYOUT_H

#include "tui/draw.h"
#include "tui/keys.h"

enum tui_layout {
    LAYOUT_GRAPH,
    LAYOUT_TENSOR,
    LAYOUT_WATCH,
    LAYOUT_STACK,
    LAYOUT_SPLIT,
    LAYOUT_COUNT
};

struct layout_place {
    enum tui_pane_id pane;
    struct draw_rect rect; /* with the title in its first row */
};
#define LAYOUT_MAX_PLACES 8

/* rows: without the status line. one: the focused pane alone (C-x 1). console_rows: 0 the layout's
 * own choice, else what `winheight` set. Returns how many places; the focused pane is always among
 * them (in place of another one where the layout lacks it). */
int layout_places(enum tui_layout layout, enum tui_pane_id focus, bool one, int console_rows,
                  int rows, int cols, struct layout_place ret[LAYOUT_MAX_PLACES]);
/* Likewise, whether or not there is room for more than one: the order in which C-x o goes about. */
int layout_order(enum tui_layout layout, enum tui_pane_id focus, int rows, int cols,
                 struct layout_place ret[LAYOUT_MAX_PLACES]);
const char *layout_name(enum tui_layout layout);
int layout_find(const char *name, enum tui_layout *ret, struct gd_err *err); /* unique prefixes */

#endif
