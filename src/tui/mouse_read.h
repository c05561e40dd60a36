// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Decodes mouse sequences byte by byte, in both forms that terminals send: "ESC [ <", numbers, then
 * M or m; and "ESC [ M" and three bytes. The decoder of curses is not used: of several presses that
 * arrive together it returns only one, last first, and it reorders the keys that follow.
 */
#ifndef GD_TUI_MOUSE_READ_H
#define GD_TUI_MOUSE_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/draw.h"

struct mouse_read {
    enum { MOUSE_NO = 0, MOUSE_NUMBERS, MOUSE_BYTES } form; /* MOUSE_NO: not inside a sequence */
    unsigned char text[24];
    size_t len;
};

/* Call after the bytes that begin a sequence. */
void mouse_read_begin(struct mouse_read *read, bool numbers);
enum mouse_taken {
    MOUSE_MORE,  /* the sequence continues */
    MOUSE_EVENT, /* *ret says what was pressed */
    MOUSE_OTHER, /* a release or another button: ignore */
    MOUSE_BROKEN /* the byte belongs to no sequence: it is a key */
};
/* The next byte of a sequence. Every sequence ends after a few bytes, whatever they are. */
enum mouse_taken mouse_read_byte(struct mouse_read *read, int byte, struct draw_mouse *ret);

#endif
