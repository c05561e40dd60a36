// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/values/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "engine/watch/numbers.h"
#include "repl/core/parse.h"

#define MAX_NAMES  16
#define MAX_WIDTH  32
#define MAX_DIGITS 20

struct known {
    const struct gd_session *session;
    const struct number_name *own;
};

static bool number_of(void *ctx, const char *name, double *ret)
{
    const struct known *known = ctx;
    if (known->own && strcmp(known->own->name, name) == 0) {
        *ret = known->own->value;
        return true;
    }
    struct gd_numbers numbers = {.session = known->session,
                                 .step = gd_session_step(known->session)};
    return gd_numbers_get(&numbers, name, ret);
}

/* Names the first metric in it that has no number. */
static int fail_unknown(struct known *known, const struct gd_expr *expr, struct gd_err *err)
{
    const char *name[MAX_NAMES];
    size_t count = gd_expr_names(expr, name, MAX_NAMES);

    for (size_t i = 0; i < count && i < MAX_NAMES; i++) {
        double value;
        if (!number_of(known, name[i], &value)) {
            return gd_fail(err, GD_ENODATA,
                           "%.80s: no metric \"%.60s\" has been reported yet: see \"info scalars\"",
                           gd_expr_text(expr), name[i]);
        }
        if (isnan(value)) {
            return gd_fail(err, GD_ENODATA, "%.80s: %.60s is NaN", gd_expr_text(expr), name[i]);
        }
    }
    return gd_fail(err, GD_ENODATA, "%.80s: the result is undefined", gd_expr_text(expr));
}

int numbers_evaluate(struct command_call *call, const char *text, const struct number_name *own,
                     double *ret, struct gd_err *err)
{
    struct gd_expr *expr = NULL;
    int rc = repl_need_session(call, err);

    rc = rc != GD_OK ? rc : gd_expr_parse(text, &expr, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (gd_expr_has_statistic(expr)) {
        gd_expr_destroy(expr);
        return gd_fail(err, GD_EINVAL,
                       "%.80s: only metrics can be used here, not statistics of a "
                       "tensor",
                       text);
    }
    unsigned error = 0;
    struct known known = {.session = call->session, .own = own};
    struct gd_observation seen = {.range = -1,
                                  .step = gd_session_step(call->session),
                                  .value_step = -1,
                                  .scalar = number_of,
                                  .scalar_ctx = &known};
    const char *name[1]; /* one metric alone may be NaN */
    bool alone = gd_expr_names(expr, name, 1) == 1 && strcmp(name[0], gd_expr_text(expr)) == 0;
    if (alone ? !number_of(&known, name[0], ret) : !gd_expr_number(expr, &seen, ret, &error)) {
        rc = fail_unknown(&known, expr, err);
    }
    gd_expr_destroy(expr);
    return rc;
}

/* ---- in a text ------------------------------------------------------------------------------- */

/* Writes the value as the format says. */
static int add_formatted(const char *format, double value, struct gd_buf *out, struct gd_err *err)
{
    const char *p = format;
    char *end = NULL;
    const char *zero = *p == '0' ? "0" : "";
    unsigned long width = strtoul(p, &end, 10), digits = 6;
    bool plain = *p == '\0' || (*p >= '0' && *p <= '9') || *p == '.' || strchr("defg", *p);
    p = end > p ? end : p;
    if (*p == '.') {
        digits = strtoul(p + 1, &end, 10);
        plain = plain && p[1] >= '0' && p[1] <= '9';
        p = end;
    }
    char letter = *p != '\0' ? *p++ : 'g';
    if (!plain || *p != '\0' || !strchr("defg", letter) || width > MAX_WIDTH ||
        digits > MAX_DIGITS) {
        return gd_fail(err, GD_EINVAL, "\"%.40s\" is not a format such as .4f, 06d or .3e", format);
    }
    bool whole = letter == 'd' || (format[0] == '\0' && value == floor(value));
    if (!isfinite(value)) {
        gd_buf_puts(out, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    } else if (whole && fabs(value) < 1e15) {
        gd_buf_printf(out, zero[0] ? "%0*lld" : "%*lld", (int)width, (long long)value);
    } else if (letter == 'f') {
        gd_buf_printf(out, zero[0] ? "%0*.*f" : "%*.*f", (int)width, (int)digits, value);
    } else if (letter == 'e') {
        gd_buf_printf(out, zero[0] ? "%0*.*e" : "%*.*e", (int)width, (int)digits, value);
    } else {
        gd_buf_printf(out, zero[0] ? "%0*.*g" : "%*.*g", (int)width, (int)digits, value);
    }
    return GD_OK;
}

/* The part of a field before the ':' of its format, which is outside of quotes. */
static size_t expression_length(const char *field, size_t len)
{
    bool quoted = false;

    for (size_t i = 0; i < len; i++) {
        quoted = field[i] == '"' ? !quoted : quoted;
        if (field[i] == ':' && !quoted) {
            return i;
        }
    }
    return len;
}

static int add_field(struct command_call *call, const char *field, size_t len, struct gd_buf *out,
                     struct gd_err *err)
{
    size_t at = expression_length(field, len);
    const char *text = gd_arena_strndup(call->arena, field, at);
    const char *format =
        gd_arena_strndup(call->arena, field + at + (at < len), len - at - (at < len));
    double value = 0;

    if (!text || !format) {
        return gd_fail_nomem(err);
    }
    int rc = numbers_evaluate(call, text, NULL, &value, err);
    return rc != GD_OK ? rc : add_formatted(format, value, out, err);
}

int numbers_fill(struct command_call *call, const char *text, const char **ret, struct gd_err *err)
{
    struct gd_buf out = GD_BUF_INIT(PARSE_MAX_LINE);
    int rc = GD_OK;

    for (const char *p = text; rc == GD_OK && *p != '\0';) {
        if ((*p == '{' || *p == '}') && p[1] == *p) {
            gd_buf_putc(&out, *p);
            p += 2;
        } else if (*p == '{') {
            size_t len = strcspn(p + 1, "{}");
            if (p[1 + len] != '}') {
                rc = gd_fail(err, GD_EINVAL, "%.200s: a '{' has no '}'", text);
                break;
            }
            rc = add_field(call, p + 1, len, &out, err);
            p += len + 2;
        } else if (*p == '}') {
            rc = gd_fail(err, GD_EINVAL, "%.200s: a '}' has no '{'", text);
        } else {
            gd_buf_putc(&out, *p++);
        }
    }
    if (rc == GD_OK && out.failed) {
        rc = gd_fail_nomem(err);
    }
    *ret = rc == GD_OK ? gd_arena_strdup(call->arena, gd_buf_text(&out)) : NULL;
    gd_buf_deinit(&out);
    return rc == GD_OK && !*ret ? gd_fail_nomem(err) : rc;
}
