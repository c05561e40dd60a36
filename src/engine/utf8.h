// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * UTF-8 as every front end reads it: names come from outside and may contain anything. Not
 * mbrtowc(3), which depends on the locale.
 */
#ifndef GD_ENGINE_UTF8_H
#define GD_ENGINE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Bytes of the character at `text` and its code point; 0, and *ret untouched, when it is not valid
 * UTF-8 (overlong forms and surrogates are not). `text` ends in NUL; no byte after it is read. */
size_t gd_utf8_decode(const char *text, uint32_t *ret);

/* Writes the bytes of a code point without a NUL, and returns their number: 1 to 4. */
size_t gd_utf8_encode(uint32_t code, char *ret);

/* A mark that changes the direction or the line of what follows: with it a name can be made to look
 * like another. */
bool gd_utf8_reorders(uint32_t code);

/* Not for a terminal: one of those, or a control character (C0, DEL, C1). */
bool gd_utf8_is_unsafe(uint32_t code);
/* Valid UTF-8 without any of them, up to `len` bytes or the NUL. */
bool gd_utf8_is_safe_text(const char *text, size_t len);
/* JSON on one line, made safe to print: unsafe characters as \uXXXX, invalid UTF-8 as U+FFFD. */
void gd_utf8_add_json(struct gd_buf *out, const char *json);

#endif
