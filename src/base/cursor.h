// SPDX-License-Identifier: MIT
/*
 * A position in a text being parsed: the scanner of all small parsers (slices, expressions,
 * selectors, watchpoint arguments, .npy headers).
 *
 * The text is borrowed, and bounded by `len`: it needs no NUL. `at` is the position for error
 * messages. A function whose text does not match skips blanks only. Blanks are those of C's
 * isspace; letters are ASCII in any locale.
 */
#ifndef GD_BASE_CURSOR_H
#define GD_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gd_cursor {
    const char *text;
    size_t len;
    size_t at; /* at most len */
};

bool gd_is_blank(char c);
bool gd_is_digit(char c);

void gd_cursor_skip_blanks(struct gd_cursor *cursor);

/* The character at the cursor, '\0' at the end. Does not skip blanks. */
char gd_cursor_char(const struct gd_cursor *cursor);

/* Skips blanks; the character after them, '\0' at the end. */
char gd_cursor_peek(struct gd_cursor *cursor);

/* Length of the identifier at the cursor: a letter or '_', then letters, digits, '_' and '.'. */
size_t gd_cursor_identifier(const struct gd_cursor *cursor);

/* Skip blanks, then take the literal, identifier etc. if it is next. */

bool gd_cursor_take(struct gd_cursor *cursor, const char *literal);

/* A whole identifier: "None" is not taken from "Nonesuch". */
bool gd_cursor_take_identifier(struct gd_cursor *cursor, const char *word);

/* Decimal digits without a sign. Values beyond int64_t become INT64_MAX and set *overflow (may be
 * NULL). */
bool gd_cursor_take_integer(struct gd_cursor *cursor, int64_t *ret, bool *overflow);

/* A finite decimal number without a sign: digits, fraction, exponent. Returns NULL, or the
 * error. */
const char *gd_cursor_take_number(struct gd_cursor *cursor, double *ret);

/* Text between two equal quotes, " or ', without escapes. *start and *len: the text inside. */
bool gd_cursor_take_quoted(struct gd_cursor *cursor, const char **start, size_t *len);

#endif
