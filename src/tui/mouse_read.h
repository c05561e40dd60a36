// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What terminals send for the mouse, byte by byte, in either of the two forms there are: behind
 * "ESC [ <" numbers that end with M or m, behind "ESC [ M" three bytes. curses's own reader is not
 * used: of several presses that arrive at once it gives one, the last one first, and puts keys that
 * follow behind others.
 */
#ifndef GD_TUI_MOUSE_READ_H
#define GD_TUI_MOUSE_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/draw.h"

struct mouse_read {
    enum { MOUSE_NO = 0, MOUSE_NUMBERS, MOUSE_BYTES } form; /* MOUSE_NO: outside of a sequence */
    unsigned char text[24];
    size_t len;
};

/* Behind what begins a sequence. */
void mouse_read_begin(struct mouse_read *read, bool numbers);
enum mouse_taken {
    MOUSE_MORE,  /* the sequence goes on */
    MOUSE_EVENT, /* *ret says what was pressed */
    MOUSE_OTHER, /* a release, another button: nothing for us */
    MOUSE_BROKEN /* this byte is none of a sequence: it is a key */
};
/* The next byte inside of one. Whatever comes, the sequence ends after a few. */
enum mouse_taken mouse_read_byte(struct mouse_read *read, int byte, struct draw_mouse *ret);

#endif
