// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A picture as a list of what was drawn, so that it can be drawn again on another terminal, in its
 * own size, number of colours and letters. draw.c records while somebody listens.
 */
#ifndef GD_TUI_TAPE_H
#define GD_TUI_TAPE_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/draw.h"

#define TAPE_MAX ((size_t)4 << 20) /* bytes of one picture */

enum tape_what {
    TAPE_TEXT,
    TAPE_FILL,
    TAPE_HLINE,
    TAPE_VLINE,
    TAPE_CURSOR,
    TAPE_THEME, /* its number in the place of cells */
    TAPE_WHAT_COUNT
};

/* fn gets every finished picture; len 0: the panes are closed. NULL: nobody listens. */
void tape_listen(void (*fn)(void *ctx, const char *bytes, size_t len), void *ctx);

/* For draw.c. */
void tape_begin(void);
void tape_add(enum tape_what what, int row, int col, int cells, enum draw_style style,
              const char *text, size_t len);
void tape_end(void);
void tape_close(void);

/* Draws a picture between draw_begin and draw_end. The bytes may be anything: false when they are
 * no picture, with some of it drawn. */
bool tape_play(struct draw *draw, const char *bytes, size_t len);

#endif
