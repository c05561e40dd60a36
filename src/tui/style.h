// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a style of draw.h looks like: by theme, and by how many colours the terminal has.
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
    short fore, back; /* a terminal's colour numbers; -1 its own */
    unsigned marks;   /* STYLE_BOLD, ... */
};

/* colors: 0 (none), 8, 16 or 256. No meaning hangs on the colour alone: without colours styles that
 * stand side by side differ by their marks. */
struct style_look style_look(enum draw_theme theme, int colors, enum draw_style style);

/* One of the 256 colours in red, green and blue, a byte each, for a terminal with true colours. */
unsigned style_rgb(int color);

#endif
