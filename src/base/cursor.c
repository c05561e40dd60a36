// SPDX-License-Identifier: MIT
#include "base/cursor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 64 /* characters of a number */

bool gd_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool gd_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_identifier(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

void gd_cursor_skip_blanks(struct gd_cursor *cursor)
{
    while (cursor->at < cursor->len && gd_is_blank(cursor->text[cursor->at])) {
        cursor->at++;
    }
}

char gd_cursor_char(const struct gd_cursor *cursor)
{
    return cursor->at < cursor->len ? cursor->text[cursor->at] : '\0';
}

char gd_cursor_peek(struct gd_cursor *cursor)
{
    gd_cursor_skip_blanks(cursor);
    return gd_cursor_char(cursor);
}

size_t gd_cursor_identifier(const struct gd_cursor *cursor)
{
    size_t at = cursor->at;

    if (!is_identifier(gd_cursor_char(cursor))) {
        return 0;
    }
    while (at < cursor->len && (is_identifier(cursor->text[at]) || gd_is_digit(cursor->text[at]) ||
                                cursor->text[at] == '.')) {
        at++;
    }
    return at - cursor->at;
}

bool gd_cursor_take(struct gd_cursor *cursor, const char *literal)
{
    size_t len = strlen(literal);

    gd_cursor_skip_blanks(cursor);
    if (cursor->len - cursor->at < len || memcmp(cursor->text + cursor->at, literal, len) != 0) {
        return false;
    }
    cursor->at += len;
    return true;
}

bool gd_cursor_take_identifier(struct gd_cursor *cursor, const char *word)
{
    gd_cursor_skip_blanks(cursor);
    return gd_cursor_identifier(cursor) == strlen(word) && gd_cursor_take(cursor, word);
}

bool gd_cursor_take_integer(struct gd_cursor *cursor, int64_t *ret, bool *overflow)
{
    int64_t value = 0;
    bool too_large = false;

    if (!gd_is_digit(gd_cursor_peek(cursor))) {
        return false;
    }
    for (; gd_is_digit(gd_cursor_char(cursor)); cursor->at++) {
        too_large |= __builtin_mul_overflow(value, 10, &value) ||
                     __builtin_add_overflow(value, cursor->text[cursor->at] - '0', &value);
    }
    *ret = too_large ? INT64_MAX : value;
    if (overflow) {
        *overflow = too_large;
    }
    return true;
}

/* Returns how many digits there were. */
static size_t skip_digits(struct gd_cursor *cursor)
{
    size_t from = cursor->at;

    while (gd_is_digit(gd_cursor_char(cursor))) {
        cursor->at++;
    }
    return cursor->at - from;
}

/* Moves to the number's end. */
static const char *skip_number(struct gd_cursor *cursor)
{
    size_t digits = skip_digits(cursor);

    if (gd_cursor_char(cursor) == '.') {
        cursor->at++;
        digits += skip_digits(cursor);
    }
    if (digits == 0) {
        return "not a number";
    }
    if (gd_cursor_char(cursor) == 'e' || gd_cursor_char(cursor) == 'E') {
        cursor->at++;
        if (gd_cursor_char(cursor) == '+' || gd_cursor_char(cursor) == '-') {
            cursor->at++;
        }
        if (skip_digits(cursor) == 0) {
            return "the exponent has no digits: write 1e-6";
        }
    }
    if (gd_cursor_char(cursor) == '.' || gd_cursor_identifier(cursor) > 0) {
        return "not a number";
    }
    return NULL;
}

const char *gd_cursor_take_number(struct gd_cursor *cursor, double *ret)
{
    char copy[NUMBER_MAX + 1];

    gd_cursor_skip_blanks(cursor);
    struct gd_cursor end = *cursor;
    const char *fault = skip_number(&end);
    if (fault) {
        return fault;
    }
    if (end.at - cursor->at > NUMBER_MAX) {
        return "the number has too many digits";
    }
    memcpy(copy, cursor->text + cursor->at, end.at - cursor->at);
    copy[end.at - cursor->at] = '\0';
    double value = strtod(copy, NULL);
    if (isinf(value)) {
        return "the number is too large (an infinite one is written infinity)";
    }
    *ret = value;
    *cursor = end;
    return NULL;
}

bool gd_cursor_take_quoted(struct gd_cursor *cursor, const char **start, size_t *len)
{
    char quote = gd_cursor_peek(cursor);
    const char *first = cursor->text + cursor->at + 1;

    if (quote != '"' && quote != '\'') {
        return false;
    }
    const char *close = memchr(first, quote, cursor->len - cursor->at - 1);
    if (!close) {
        return false;
    }
    *start = first;
    *len = (size_t)(close - first);
    cursor->at += *len + 2;
    return true;
}
