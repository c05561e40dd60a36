// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/values/figures.h"

#include <ctype.h>
#include <string.h>

#include "engine/watch/numbers.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

#define MAX_NAMES 16

/* ---- one tensor ------------------------------------------------------------------------------ */

bool figures_same_node(struct command_call *call, const char *a, const char *b)
{
    gd_node_id first, second;

    return strcmp(a, b) == 0 ||
           (call->session && gd_graph_find(call->session->graph, a, &first, NULL) == GD_OK &&
            gd_graph_find(call->session->graph, b, &second, NULL) == GD_OK && first == second);
}

static bool is_part_of_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* The text without "NODE." before the statistics of `name`, whose first `length` bytes are NODE. */
static const char *remove_node(struct command_call *call, const char *text, const char *name,
                               size_t length)
{
    size_t whole = strlen(name), used = 0;
    char *out = gd_arena_alloc(call->arena, strlen(text) + 1);

    for (const char *at = text; out && *at;) {
        bool here = strncmp(at, name, whole) == 0 && !is_part_of_name(at[whole]) &&
                    (at == text || !is_part_of_name(at[-1]));
        at += here ? length + 1 : 0;
        do {
            out[used++] = *at++;
        } while (here && is_part_of_name(*at));
    }
    if (out) {
        out[used] = '\0';
    }
    return out;
}

int figures_take(struct command_call *call, const char *expression, const char **ret,
                 const char **where, struct gd_err *err)
{
    struct gd_expr *expr = NULL;
    const char *names[MAX_NAMES], *text = expression, *node = NULL;
    size_t length = 0;
    int rc = gd_expr_parse(expression, &expr, NULL);
    size_t count = rc == GD_OK ? gd_expr_names(expr, names, MAX_NAMES) : 0;

    rc = GD_OK;
    for (size_t i = 0; rc == GD_OK && i < count && i < MAX_NAMES; i++) {
        if (!gd_numbers_is_figure(call->debugger->current, names[i], &length, NULL)) {
            continue;
        }
        const char *named = gd_arena_strndup(call->arena, names[i], length);
        text = named ? remove_node(call, text, names[i], length) : NULL;
        if (!text) {
            rc = gd_fail_nomem(err);
        } else if (node && !figures_same_node(call, node, named)) {
            rc = gd_fail(err, GD_EINVAL,
                         "an expression is about one tensor: %.100s and %.100s are two; set a "
                         "watchpoint on each",
                         out_safe(call, node), out_safe(call, named));
        } else {
            node = named;
        }
    }
    gd_expr_destroy(expr);
    *ret = text;
    *where = node;
    return rc;
}

/* ---- values ---------------------------------------------------------------------------------- */

struct figures {
    struct gd_numbers numbers;
    size_t count;
    const char *name[MAX_NAMES];
    double value[MAX_NAMES];
};

static bool find_number(void *ctx, const char *name, double *ret)
{
    struct figures *figures = ctx;

    for (size_t i = 0; i < figures->count; i++) {
        if (strcmp(figures->name[i], name) == 0) {
            *ret = figures->value[i];
            return true;
        }
    }
    return gd_numbers_get(&figures->numbers, name, ret);
}

/* "NaN or Inf in it" and the like, for a statistic without a value. */
static const char *describe_lack(unsigned error)
{
    return error & (GD_HIT_NAN | GD_HIT_INF) ? "the tensor has NaN or Inf"
           : error & GD_HIT_NO_PREVIOUS      ? "it compares with earlier steps: see `watch`"
                                             : "it is unknown for this tensor";
}

/* NULL, or why the statistic has no value. */
static const char *fetch_figure(struct command_call *call, const char *node,
                                enum gd_statistic statistic, double *ret)
{
    struct value value;
    struct gd_err err;
    unsigned error = 0;
    const char *why = NULL;

    if (value_parse(call, node, &value, &err) != GD_OK) {
        return inspect_printf(call, "%s", err.text);
    }
    if (value_fetch(call, &value, VALUE_STATS, &err) != GD_OK) {
        why = inspect_printf(call, "%s", err.text);
    } else {
        struct gd_observation seen = {.stats = value.has_stats ? &value.stats : NULL,
                                      .error = GD_HIT_NO_PREVIOUS,
                                      .dtype = value.dtype,
                                      .range = -1,
                                      .value_step = -1};
        why = gd_statistic_value(statistic, &seen, ret, &error) ? NULL : describe_lack(error);
    }
    value_deinit(&value);
    return why;
}

static void fetch_figures(struct command_call *call, const struct gd_expr *expr,
                          struct figures *ret, const char **why)
{
    const char *names[MAX_NAMES];
    size_t count = gd_expr_names(expr, names, MAX_NAMES), length = 0;
    enum gd_statistic statistic;

    for (size_t i = 0; i < count && i < MAX_NAMES && !*why; i++) {
        double value = 0;
        if (gd_numbers_is_figure(call->session, names[i], &length, &statistic)) {
            const char *node = inspect_printf(call, "%.*s", (int)length, names[i]);
            *why = fetch_figure(call, node, statistic, &value);
            ret->name[ret->count] = names[i];
            ret->value[ret->count++] = value;
        } else if (!find_number(ret, names[i], &value)) {
            *why = inspect_printf(call, "the training has not reported a metric \"%s\"",
                                  out_safe(call, names[i]));
        }
    }
}

bool figures_number(struct command_call *call, const char *text, double *ret, const char **why)
{
    struct gd_expr *expr = NULL;
    size_t length = 0;
    unsigned error = 0;
    bool whole =
        gd_numbers_is_figure(call->session, text, &length, NULL); /* "net/fc1/weight.max" */

    if (gd_expr_parse(whole ? inspect_printf(call, "\"%s\"", text) : text, &expr, NULL) != GD_OK ||
        gd_expr_has_statistic(expr)) {
        gd_expr_destroy(expr);
        return false;
    }
    struct figures figures = {
        .numbers = {.session = call->session, .step = gd_session_step(call->session)}};
    *why = NULL;
    fetch_figures(call, expr, &figures, why);
    struct gd_observation seen = {.dtype = GD_FLOAT64,
                                  .range = -1,
                                  .step = figures.numbers.step,
                                  .value_step = figures.numbers.step,
                                  .scalar = find_number,
                                  .scalar_ctx = &figures};
    if (figures.count > 0 && !*why && !gd_expr_number(expr, &seen, ret, &error)) {
        *why = "it is undefined for these numbers";
    }
    gd_expr_destroy(expr);
    return figures.count > 0;
}
