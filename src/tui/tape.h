// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A picture as a list of drawing calls, so that another terminal can replay it in its own size,
 * colours and character set. draw.c records while somebody listens.
 */
#ifndef GD_TUI_TAPE_H
#define GD_TUI_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/draw.h"

#define TAPE_MAX ((size_t)4 << 20) /* bytes of one picture */

enum tape_what {
    TAPE_TEXT,
    TAPE_FILL,
    TAPE_HLINE,
    TAPE_VLINE,
    TAPE_CURSOR,
    TAPE_THEME, /* the theme's number takes the place of the columns */
    TAPE_WHAT_COUNT
};

#define TAPE_MAX_CELLS 4096 /* in a row or column */

struct tape_entry { /* followed by its text */
    uint8_t what;
    uint8_t style;
    int16_t row, col, cells;
    uint16_t len;
};
bool tape_is_cell(int value); /* a possible row, column or number of cells */

/* fn receives every finished picture; len 0: the panes were closed. NULL: stop listening. */
void tape_listen(void (*fn)(void *ctx, const char *bytes, size_t len), void *ctx);

/* Called by draw.c. */
void tape_begin(void);
void tape_add(enum tape_what what, int row, int col, int cells, enum draw_style style,
              const char *text, size_t len);
void tape_end(void);
void tape_close(void);

/* Replays a picture between draw_begin and draw_end. The bytes are untrusted: it
 * ends at the first that are not of a picture. */
void tape_play(struct draw *draw, const char *bytes, size_t len);

#endif
