// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Text for the screen: measured in columns, and with everything that a terminal could take for a
 * command made visible.
 */
#ifndef GD_TUI_TEXT_H
#define GD_TUI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct tui_glyph {
    char text[16]; /* what to draw; NUL-terminated */
    int width;     /* columns it takes */
};

/* The first character of `text` (not empty); returns its length in bytes. Control characters and
 * invalid UTF-8 become \xNN, unprintable characters \u{N}; without utf8 everything beyond ASCII
 * becomes '?'. */
size_t tui_glyph(const char *text, bool utf8, struct tui_glyph *ret);

/* Columns of text[0..len) when drawn. */
int tui_text_width(const char *text, size_t len, bool utf8);

/* The length in bytes of the longest prefix that fits into `columns`. */
size_t tui_text_fit(const char *text, int columns, bool utf8);

/* The length in bytes of the part that goes into one row: all, or up to a blank, or up to the end
 * of a scope; never up to a blank inside the bars of a histogram. */
size_t tui_text_wrap(const char *text, int columns, bool utf8);
/* The same in *row; returns where the next row begins. */
size_t tui_text_next(const char *text, int columns, bool utf8, size_t *row);

/* Edits the text of one line with a key: Backspace removes the last character, a printable ASCII
 * character is appended if it fits. false: the key does neither. */
bool tui_text_key(char *text, size_t size, int key);
void tui_text_erase_last(char *text);

/* Shortens a name that does not fit: leading scopes first ("…/fc1/Add:0"), then its beginning.
 * Returns the name itself or `room`. */
const char *tui_text_fit_name(const char *name, int columns, bool utf8, char *room, size_t size);

#endif
