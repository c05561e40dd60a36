// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * UTF-8 as every front end reads it: names come from outside and may hold anything.
 */
#ifndef GD_ENGINE_UTF8_H
#define GD_ENGINE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at `text` and its code point; 0, and *ret untouched, when it is not valid
 * UTF-8 (overlong forms and surrogates are not). `text` ends in NUL; no byte after it is read. */
size_t gd_utf8_decode(const char *text, uint32_t *ret);

/* Writes the bytes of a code point, no NUL behind them, and says how many: 1 ... 4. */
size_t gd_utf8_encode(uint32_t code, char *ret);

/* A mark that changes the direction or the line of what follows: with it a name can be made to look
 * like another. */
bool gd_utf8_reorders(uint32_t code);

#endif
