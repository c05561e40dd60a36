// SPDX-License-Identifier: MIT
/*
 * A position in a text that is parsed: the scanner under all small parsers (slices, expressions,
 * selectors, watchpoint arguments, .npy headers).
 *
 * The text is borrowed and bounded by `len`: it needs no NUL, and nothing beyond it is read. `at`
 * is the position for error messages. Whatever does not match leaves the cursor where it is, after
 * the blanks. Blanks are those of C's isspace; letters are ASCII, in any locale.
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

/* The character at the cursor, '\0' at the end. It does not skip blanks. */
char gd_cursor_char(const struct gd_cursor *cursor);

/* Skips blanks; the character after them, '\0' at the end. */
char gd_cursor_peek(struct gd_cursor *cursor);

/* Length of the identifier at the cursor: a letter or '_', then letters, digits, '_' and '.'. */
size_t gd_cursor_identifier(const struct gd_cursor *cursor);

/* These skip blanks, then take what they are named after if it comes next. */

bool gd_cursor_take(struct gd_cursor *cursor, const char *literal);

/* A whole identifier: "None" is not taken from "Nonesuch". */
bool gd_cursor_take_identifier(struct gd_cursor *cursor, const char *word);

/* Decimal digits without a sign. A value that int64_t cannot hold is INT64_MAX, with *overflow
 * (may be NULL) set. */
bool gd_cursor_take_integer(struct gd_cursor *cursor, int64_t *ret, bool *overflow);

/* A finite decimal number without a sign: digits, a fraction, an exponent. Returns NULL, or what
 * is wrong with it. */
const char *gd_cursor_take_number(struct gd_cursor *cursor, double *ret);

/* A text between two quotes of the same kind, " or ', without escapes. *start and *len: what is
 * between them. */
bool gd_cursor_take_quoted(struct gd_cursor *cursor, const char **start, size_t *len);

#endif
