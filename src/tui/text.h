// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Text as it may be put on a screen: one column-counted piece at a time, with everything that a
 * terminal could take for a command made visible.
 */
#ifndef GD_TUI_TEXT_H
#define GD_TUI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct tui_glyph {
    char text[16]; /* what to draw, NUL-terminated */
    int width;     /* columns it takes */
};

/* The first character of `text` (not empty), and how many bytes it is made of. Control characters
 * and bytes that are no UTF-8 become \xNN, unprintable characters \u{N}; without utf8 everything
 * beyond ASCII becomes '?'. */
size_t tui_glyph(const char *text, bool utf8, struct tui_glyph *ret);

/* Columns of text[0..len) when drawn. */
int tui_text_width(const char *text, size_t len, bool utf8);

/* The longest start of `text` that fits `columns`, in bytes. */
size_t tui_text_fit(const char *text, int columns, bool utf8);

/* How much of a text goes into one row: all of it, or up to a blank, or else to the end of a scope,
 * but never to a blank within the bars of a histogram. */
size_t tui_text_wrap(const char *text, int columns, bool utf8);
/* The same as *row; returns where the text of the next row begins. */
size_t tui_text_next(const char *text, int columns, bool utf8, size_t *row);

/* A name that does not fit loses leading scopes ("…/fc1/Add:0"), and what is left of it its start.
 * Returns the name itself or `room`. */
const char *tui_text_fit_name(const char *name, int columns, bool utf8, char *room, size_t size);

#endif
