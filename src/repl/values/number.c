// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/values/number.h"

#include <stdlib.h>
#include <string.h>

#include "engine/watch/numbers.h"
#include "repl/values/figures.h"
#include "repl/values/inspect.h"

#define MAX_NAMES 64

static bool is_own(const struct gd_session *session, const char *name)
{
    double value;

    return strcmp(name, "elapsed") == 0 || strcmp(name, "step_time") == 0 ||
           gd_numbers_of_event(session, name, &value);
}

static bool is_constant(const struct gd_expr *expr)
{
    const char *name;

    return !gd_expr_has_statistic(expr) && gd_expr_names(expr, &name, 1) == 0 &&
           !strstr(gd_expr_text(expr), "step");
}

/* "1e400", which no expression takes. */
static bool is_literal(const char *text)
{
    char *end;

    strtod(text, &end);
    return strchr("+-.0123456789", text[0]) && *end == '\0';
}

/* *missing: the first metric that was never reported, or NULL. */
static bool is_of_metrics(struct command_call *call, const struct gd_expr *expr,
                          const char **missing)
{
    const struct gd_session *session = call->session;
    struct gd_expr_function function;
    const char *name[MAX_NAMES];
    size_t count = gd_expr_names(expr, name, MAX_NAMES);
    bool all = true, functions = false;

    *missing = NULL;
    for (size_t i = 0; i < count && i < MAX_NAMES && !*missing; i++) {
        bool is_function = gd_expr_function(name[i], &function);
        const char *of = is_function ? function.number : name[i];
        bool known = gd_session_scalar(session, of) || is_own(session, of);
        functions = functions || is_function;
        all = all && known;
        *missing = known ? NULL : gd_arena_strdup(call->arena, of);
    }
    return !gd_expr_has_statistic(expr) && (count > 0 || strstr(gd_expr_text(expr), "step")) &&
           (all || functions);
}

bool number_is_constant(const char *text)
{
    struct gd_expr *expr = NULL;
    bool constant = gd_expr_parse(text, &expr, NULL) == GD_OK && is_constant(expr);

    gd_expr_destroy(expr);
    return constant;
}

bool number_find(struct command_call *call, const char *text, double *value, bool *known,
                 const char **why)
{
    const struct gd_session *session = call->session;
    struct gd_expr *expr = NULL;
    const char *missing = NULL;
    struct gd_err err;
    unsigned error;

    if (gd_expr_parse(text, &expr, &err) != GD_OK) {
        *known = false;
        *why = inspect_printf(call, "%s", out_safe(call, err.text));
        return is_literal(text) || (session && gd_expr_is_call(text));
    }
    if (session && !is_constant(expr) && figures_number(call, text, value, why)) {
        *known = !*why;
        gd_expr_destroy(expr);
        return true;
    }
    bool found = is_constant(expr) || (session && is_of_metrics(call, expr, &missing));
    if (found) {
        struct gd_numbers numbers = {.session = session,
                                     .step = session ? gd_session_step(session) : 0};
        *known = gd_numbers_value(&numbers, expr, value, &error);
        *why = missing ? inspect_printf(call, "the training has not reported a metric \"%s\"",
                                        out_safe(call, missing))
               : error & GD_HIT_NAN         ? "a metric in it is NaN"
               : error & GD_HIT_NO_PREVIOUS ? "there were too few reports so far"
                                            : "it is undefined for these numbers";
    }
    gd_expr_destroy(expr);
    return found;
}
