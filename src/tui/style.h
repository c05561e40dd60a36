// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The look of each style of draw.h, by theme and number of colours.
 */
#ifndef GD_TUI_STYLE_H
#define GD_TUI_STYLE_H

#include "tui/draw.h"

enum {
    STYLE_BOLD = 1,
    STYLE_DIM = 2,
    STYLE_REVERSE = 4,
    STYLE_UNDERLINE = 8,
};

struct style_look {
    short fore, back; /* terminal colour numbers; -1: the terminal's default */
    unsigned marks;   /* STYLE_BOLD, ... */
};

/* colors: 0 (none), 8, 16 or 256. No meaning depends on colour alone: without colours, styles that
 * appear side by side differ in their attributes. */
struct style_look style_look(enum draw_theme theme, int colors, enum draw_style style);

/* One of the 256 colours as 0xRRGGBB, for a terminal with true colours. */
unsigned style_rgb(int color);

#endif
