// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Where panes go: the named layouts, for screens from 40x10 up. Below 80x24 one pane at a time,
 * or, from 150 columns on, the panes side by side; from 132x43 a layout shows more panes.
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
    LAYOUT_PICTURE,
    LAYOUT_COUNT
};

struct layout_place {
    enum tui_pane_id pane;
    struct draw_rect rect; /* its first row is the title */
};
#define LAYOUT_MAX_PLACES 8

struct layout_wish {
    enum tui_layout layout;
    enum tui_pane_id pane; /* must be shown, if necessary instead of another pane */
    bool typing;           /* the keyboard is at the prompt, which must be shown */
    bool one;              /* only this pane (C-x 1) */
    int console_rows;      /* 0: the layout's default; otherwise set by `winheight` */
    int left_percent;      /* 0: the layout's default */
};

/* rows excludes the status line. Returns the number of places. */
int layout_places(const struct layout_wish *wish, int rows, int cols,
                  struct layout_place ret[LAYOUT_MAX_PLACES]);
/* One pane at a time: the screen is small, or C-x 1. */
bool layout_is_one(const struct layout_wish *wish, int rows, int cols);
/* The panes in the order of C-x o, whether or not the screen has room for more than one. */
int layout_order(enum tui_layout layout, enum tui_pane_id pane, int rows, int cols,
                 struct layout_place ret[LAYOUT_MAX_PLACES]);
const char *layout_name(enum tui_layout layout);
/* accepts unique prefixes */
int layout_find(const char *name, enum tui_layout *ret, struct gd_err *err);

#endif
