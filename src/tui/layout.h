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

struct layout_wish {
    enum tui_layout layout;
    enum tui_pane_id pane; /* is among the places, instead of another where the layout lacks it */
    bool typing;           /* the keyboard is at the prompt, which is shown then */
    bool one;              /* the pane alone (C-x 1) */
    int console_rows;      /* 0: the layout's own choice, else what `winheight` set */
    int left_percent;      /* 0: likewise */
};

/* rows: without the status line. Returns how many places. */
int layout_places(const struct layout_wish *wish, int rows, int cols,
                  struct layout_place ret[LAYOUT_MAX_PLACES]);
/* One pane at a time: the screen is small, or it is wished. */
bool layout_is_one(const struct layout_wish *wish, int rows, int cols);
/* Likewise, whether or not there is room for more than one: the order in which C-x o goes about. */
int layout_order(enum tui_layout layout, enum tui_pane_id pane, int rows, int cols,
                 struct layout_place ret[LAYOUT_MAX_PLACES]);
const char *layout_name(enum tui_layout layout);
int layout_find(const char *name, enum tui_layout *ret, struct gd_err *err); /* unique prefixes */

#endif
