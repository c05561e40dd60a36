// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/commands/breakpoints/dprintf_text.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARGS   64
#define MAX_PIECES (2 * MAX_ARGS + 2)
#define MAX_WIDTH  9999 /* of a field, and digits after the point */
#define MAX_DIGITS 8    /* of these numbers */

/* ---- splitting ----------------------------------------------------------------------------- */

/* The end of the string that starts at the quote; NULL: it is not closed. */
static const char *skip_string(const char *text)
{
    char quote = *text++;

    while (*text && *text != quote) {
        text += *text == '\\' && text[1] ? 2 : 1;
    }
    return *text ? text + 1 : NULL;
}

/* A word `if` begins at the blank `at`, and an expression follows. */
static bool is_if(const char *at)
{
    return (*at == ' ' || *at == '\t') && strncmp(at + 1, "if", 2) == 0 &&
           (at[3] == ' ' || at[3] == '\t');
}

/* The next comma or ` if ` outside of quotes and brackets, or the end. NULL: something is open. */
static const char *find_end(const char *text, bool stop_at_if, struct gd_err *err)
{
    int depth = 0;

    while (*text) {
        if (*text == '"' || *text == '\'') {
            text = skip_string(text);
            if (!text) {
                gd_fail(err, GD_EINVAL, "dprintf: a quote is not closed");
                return NULL;
            }
            continue;
        }
        if (depth == 0 && (*text == ',' || (stop_at_if && is_if(text)))) {
            return text;
        }
        depth += strchr("([{", *text) ? 1 : strchr(")]}", *text) && depth > 0 ? -1 : 0;
        text++;
    }
    if (depth > 0) {
        gd_fail(err, GD_EINVAL, "dprintf: a bracket is not closed");
        return NULL;
    }
    return text;
}

static const char *copy_trimmed(struct gd_arena *arena, const char *text, const char *end)
{
    while (text < end && (*text == ' ' || *text == '\t')) {
        text++;
    }
    while (end > text && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    return gd_arena_strndup(arena, text, (size_t)(end - text));
}

int dprintf_split(struct gd_arena *arena, const char *line, const char **where, const char **print,
                  const char **guard, struct gd_err *err)
{
    const char *comma = find_end(line, true, err), *at = comma;

    while (at && *at == ',') { /* past the arguments, to the condition */
        at = find_end(at + 1, true, err);
    }
    if (!at) {
        return GD_EINVAL;
    }
    *where = copy_trimmed(arena, line, comma);
    *print = comma < at ? copy_trimmed(arena, comma + 1, at) : "";
    *guard = *at ? copy_trimmed(arena, at + 3, at + strlen(at)) : "";
    return *where && *print && *guard ? GD_OK : gd_fail_nomem(err);
}

/* ---- strings ------------------------------------------------------------------------------- */

static char escaped_char(const char **at)
{
    static const char names[] = "abefnrtv", values[] = "\a\b\033\f\n\r\t\v";
    const char *p = *at;
    const char *known = *p ? strchr(names, *p) : NULL;
    int value = 0;

    if (*p >= '0' && *p <= '7') {
        for (int i = 0; i < 3 && *p >= '0' && *p <= '7'; i++) {
            value = value * 8 + (*p++ - '0');
        }
        *at = p;
        return (char)(value ? value : ' '); /* no NUL in a text */
    }
    *at = p + 1;
    return known ? values[known - names] : *p;
}

/* Without the quotes, escapes resolved as in C; in place. */
static void resolve_string(char *text)
{
    const char *from = text + 1, *end = text + strlen(text) - 1;
    char *to = text;

    while (from < end) {
        char c = *from++;
        if (c == '\\' && from < end) {
            c = escaped_char(&from);
        }
        *to++ = c;
    }
    *to = '\0';
}

static int add_arg(struct gd_arena *arena, const char *from, const char *end,
                   struct dprintf_text *text, struct gd_err *err)
{
    struct dprintf_arg *arg = &text->arg[text->arg_count];
    char *copy = (char *)(uintptr_t)copy_trimmed(arena, from, end);

    if (!copy) {
        return gd_fail_nomem(err);
    }
    if (copy[0] == '\0') {
        return gd_fail(err, GD_EINVAL, "dprintf: an argument is missing at comma %d",
                       text->arg_count + 1);
    }
    if (text->arg_count == MAX_ARGS) {
        return gd_fail(err, GD_ELIMIT, "dprintf: at most %d arguments", MAX_ARGS - 1);
    }
    arg->text = copy;
    arg->is_string = copy[0] == '"' && skip_string(copy) == copy + strlen(copy);
    if (arg->is_string) {
        resolve_string(copy);
    }
    text->arg_count++;
    return GD_OK;
}

/* ---- the format ---------------------------------------------------------------------------- */

static int bad_conversion(const char *at, size_t len, struct gd_err *err)
{
    return gd_fail(err, GD_EINVAL,
                   "dprintf: \"%.*s\" is not a conversion: use %%d %%u %%x %%o %%c %%e %%f %%g %%a "
                   "%%s, or %%%% for a percent sign",
                   (int)len, at);
}

/* Digits up to MAX_WIDTH; false: more. Zeros in front must not make it any longer. */
static bool skip_number(const char **at)
{
    long value = strtol(*at, NULL, 10);
    size_t digits = strspn(*at, "0123456789");

    *at += digits;
    return value <= MAX_WIDTH && digits <= MAX_DIGITS;
}

/* The conversion at `at`, a percent sign. */
static int parse_conversion(struct gd_arena *arena, const char **at, struct dprintf_piece *piece,
                            struct gd_err *err)
{
    const char *p = *at + 1;
    size_t flags = strspn(p, "-+ #0");
    p += flags;
    bool fits = skip_number(&p) && flags < 6;
    if (*p == '.') {
        p++;
        fits = skip_number(&p) && fits;
    }
    const char *end = p;
    p += strspn(p, "hlLjzt");
    if (*p == '\0' || !strchr("diuxXocfFeEgGaAs", *p)) {
        return bad_conversion(*at, (size_t)(p - *at) + (*p != '\0'), err);
    }
    if (!fits) {
        return gd_fail(err, GD_EINVAL,
                       "dprintf: a conversion has too many flags, or a number larger than %d",
                       MAX_WIDTH);
    }
    piece->text = gd_arena_strndup(arena, *at, (size_t)(end - *at));
    piece->conversion = *p;
    *at = p + 1;
    return piece->text ? GD_OK : gd_fail_nomem(err);
}

/* Literal text up to the next conversion, "%%" resolved. */
static int parse_literal(struct gd_arena *arena, const char **at, struct dprintf_piece *piece,
                         struct gd_err *err)
{
    char *copy = gd_arena_strdup(arena, *at);
    const char *p = *at;
    size_t len = 0;

    while (copy && *p && (*p != '%' || p[1] == '%')) {
        copy[len++] = *p;
        p += *p == '%' ? 2 : 1;
    }
    if (!copy) {
        return gd_fail_nomem(err);
    }
    copy[len] = '\0';
    *piece = (struct dprintf_piece){.text = copy};
    *at = p;
    return GD_OK;
}

static int parse_format(struct gd_arena *arena, const char *format, struct dprintf_text *text,
                        int *conversions, struct gd_err *err)
{
    int rc = GD_OK;

    *conversions = 0;
    while (rc == GD_OK && *format) {
        if (text->piece_count == MAX_PIECES) {
            return gd_fail(err, GD_ELIMIT, "dprintf: the format has too many conversions");
        }
        struct dprintf_piece *piece = &text->piece[text->piece_count++];
        bool literal = *format != '%' || format[1] == '%';
        rc = literal ? parse_literal(arena, &format, piece, err)
                     : parse_conversion(arena, &format, piece, err);
        *conversions += !literal;
    }
    return rc;
}

static int check_args(const struct dprintf_text *text, int conversions, struct gd_err *err)
{
    int given = text->arg_count, next = 0;

    if (given != conversions) {
        return gd_fail(err, GD_EINVAL, "dprintf: the format takes %d argument%s, but %d %s given",
                       conversions, conversions == 1 ? "" : "s", given, given == 1 ? "is" : "are");
    }
    for (int i = 0; i < text->piece_count; i++) {
        char conversion = text->piece[i].conversion;
        if (conversion && text->arg[next++].is_string && conversion != 's') {
            return gd_fail(err, GD_EINVAL, "dprintf: argument %d is a string: %%%c needs a number",
                           next, conversion);
        }
    }
    return GD_OK;
}

int dprintf_parse(struct gd_arena *arena, const char *print, struct dprintf_text *ret,
                  struct gd_err *err)
{
    struct dprintf_text text = {.arg = gd_arena_zalloc(arena, (MAX_ARGS + 1) * sizeof(*text.arg)),
                                .piece = gd_arena_zalloc(arena, MAX_PIECES * sizeof(*text.piece))};
    int rc = text.arg && text.piece ? GD_OK : gd_fail_nomem(err), conversions = 0;

    for (const char *at = print; rc == GD_OK && *print && at;) {
        const char *end = find_end(at, false, err);
        rc = end ? add_arg(arena, at, end, &text, err) : GD_EINVAL;
        at = rc == GD_OK && *end == ',' ? end + 1 : NULL;
    }
    if (rc == GD_OK && text.arg_count > 0 && text.arg[0].is_string) {
        rc = parse_format(arena, text.arg[0].text, &text, &conversions, err);
        text.is_format = conversions > 0 || text.arg_count == 1;
    }
    if (rc == GD_OK && text.is_format) {
        text.arg++;
        text.arg_count--;
        rc = check_args(&text, conversions, err);
    } else if (rc == GD_OK && text.piece_count > 0) {
        text.arg[0].text = text.piece[0].text; /* "%%" is a percent sign there, too */
    }
    if (rc == GD_OK) {
        *ret = text;
    }
    return rc;
}

/* ---- filling it in ------------------------------------------------------------------------- */

/* The conversion as printf takes it; `length` is its size modifier. */
static const char *spec_of(const struct dprintf_piece *piece, const char *length, char conversion,
                           char *out, size_t size)
{
    snprintf(out, size, "%s%s%c", piece->text, length, conversion);
    return out;
}

/* Conversions were checked by parse_conversion. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

void dprintf_number(struct gd_buf *out, const struct dprintf_piece *piece, double number)
{
    bool whole = strchr("diuxXoc", piece->conversion) != NULL;
    char spec[64];

    if (piece->conversion == 's') {
        char text[40];
        snprintf(text, sizeof(text),
                 number == floor(number) && fabs(number) < 1e15 ? "%.0f" : "%.9g", number);
        dprintf_string(out, piece, text);
    } else if (whole && (!isfinite(number) || fabs(number) >= 0x1p63)) {
        gd_buf_printf(out, spec_of(piece, "", 'g', spec, sizeof(spec)), number);
    } else if (piece->conversion == 'c') {
        gd_buf_printf(out, spec_of(piece, "", 'c', spec, sizeof(spec)), (int)(char)(int64_t)number);
    } else if (piece->conversion == 'd' || piece->conversion == 'i') {
        gd_buf_printf(out, spec_of(piece, "ll", 'd', spec, sizeof(spec)), (long long)number);
    } else if (whole) {
        gd_buf_printf(out, spec_of(piece, "ll", piece->conversion, spec, sizeof(spec)),
                      (unsigned long long)(long long)number);
    } else {
        gd_buf_printf(out, spec_of(piece, "", piece->conversion, spec, sizeof(spec)), number);
    }
}

void dprintf_whole(struct gd_buf *out, const struct dprintf_piece *piece, const char *digits)
{
    bool is_signed = strchr("di", piece->conversion) != NULL;
    char spec[64];

    errno = 0;
    long long number = strtoll(digits, NULL, 10);
    if (piece->conversion == 's') {
        dprintf_string(out, piece, digits);
    } else if (!strchr("diuxXo", piece->conversion)) {
        dprintf_number(out, piece, strtod(digits, NULL));
    } else if (errno != 0) {
        gd_buf_puts(out, digits);
    } else if (is_signed) {
        gd_buf_printf(out, spec_of(piece, "ll", 'd', spec, sizeof(spec)), number);
    } else {
        gd_buf_printf(out, spec_of(piece, "ll", piece->conversion, spec, sizeof(spec)),
                      (unsigned long long)number);
    }
}

void dprintf_string(struct gd_buf *out, const struct dprintf_piece *piece, const char *text)
{
    char spec[64];

    if (strcmp(piece->text, "%") == 0) {
        gd_buf_puts(out, text);
        return;
    }
    gd_buf_printf(out, spec_of(piece, "", 's', spec, sizeof(spec)), text);
}
