// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/watch/numbers.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/graph/similar.h"
#include "engine/metric/over_ranks.h"
#include "engine/session_impl.h"

double gd_numbers_elapsed(const struct gd_session *session)
{
    double running = session->timing.running;

    if (session->state == GD_RUNNING) {
        running += debugger_now(session->debugger) - session->impl->since;
    }
    return running;
}

/* Numbers that no training reports as a metric. */
static bool own_number(const struct gd_numbers *numbers, const char *name, double *ret)
{
    const struct gd_session *session = numbers->session;

    if (strcmp(name, "elapsed") == 0) {
        *ret = gd_numbers_elapsed(session);
        return !gd_session_is_record(session);
    }
    if (strcmp(name, "step_time") == 0) {
        *ret = session->step_times.part[GD_TIME_TOTAL];
        return session->step_times.step > 0 && *ret >= 0;
    }
    return false;
}

bool gd_numbers_of_event(const struct gd_session *session, const char *name, double *ret)
{
    const struct gd_happened *happened = &session->stop.happened;
    int64_t number = strcmp(name, "epoch") == 0   ? happened->epoch
                     : strcmp(name, "batch") == 0 ? happened->batch
                                                  : 0;

    *ret = (double)number;
    return number > 0 && session->state == GD_STOPPED && session->stop.reason == GD_STOP_EVENT;
}

static bool plain_number(const struct gd_numbers *numbers, const char *name, double *ret)
{
    if (strcmp(name, "step") == 0) {
        *ret = (double)numbers->step;
        return true;
    }
    if (numbers->epoch > 0 && strcmp(name, "epoch") == 0) {
        *ret = (double)numbers->epoch;
        return true;
    }
    if (numbers->batch > 0 && strcmp(name, "batch") == 0) {
        *ret = (double)numbers->batch;
        return true;
    }
    if (gd_numbers_of_event(numbers->session, name, ret)) {
        return true;
    }
    const struct gd_scalar *scalar = gd_session_scalar(numbers->session, name);
    if (gd_over_ranks_unknown(numbers->session, name)) {
        return false;
    }
    if (!scalar) {
        return own_number(numbers, name, ret);
    }
    *ret = scalar->value;
    return true;
}

/* Reported in this step, or since the previous one has ended. */
static bool is_new(const struct gd_numbers *numbers, const struct gd_scalar *scalar)
{
    return scalar->step + scalar->late >= numbers->step;
}

static bool previous_number(const struct gd_numbers *numbers, const struct gd_scalar *scalar,
                            double *ret)
{
    bool of_now = is_new(numbers, scalar); /* otherwise nothing came since */

    *ret = of_now ? scalar->before : scalar->value;
    return !of_now || scalar->has_before;
}

/* New, and better than ever before. */
static double has_improved(const struct gd_numbers *numbers, const struct gd_past_best *best,
                           const struct gd_scalar *scalar)
{
    return is_new(numbers, scalar) && isfinite(best->value) && best->reports == 0;
}

bool gd_numbers_get(void *ctx, const char *name, double *ret)
{
    const struct gd_numbers *numbers = ctx;
    struct gd_expr_function function;

    if (!gd_expr_function(name, &function)) {
        return plain_number(numbers, name, ret);
    }
    if (function.kind == GD_FN_ISNAN) {
        bool known = plain_number(numbers, function.number, ret);
        *ret = isnan(*ret) ? 1 : 0;
        return known;
    }
    const struct gd_scalar *scalar = gd_session_scalar(numbers->session, function.number);
    if (!scalar || gd_over_ranks_unknown(numbers->session, function.number)) {
        return false;
    }
    const struct gd_past_values *past = &scalar->values;
    const struct gd_past_best *best = function.least ? &past->least : &past->most;
    switch (function.kind) {
    case GD_FN_PREVIOUS: return previous_number(numbers, scalar, ret);
    case GD_FN_MEAN: return gd_past_values_mean(past, function.count, ret);
    case GD_FN_STALL: *ret = best->reports >= function.count; return past->reports > function.count;
    case GD_FN_IMPROVED: *ret = has_improved(numbers, best, scalar); return true;
    default: *ret = best->value; return !isnan(best->value);
    }
}

static struct gd_observation observe_numbers(struct gd_numbers *numbers)
{
    return (struct gd_observation){.dtype = GD_FLOAT64,
                                   .range = -1,
                                   .step = numbers->step,
                                   .value_step = numbers->step,
                                   .scalar = gd_numbers_get,
                                   .scalar_ctx = numbers};
}

enum gd_truth gd_numbers_judge(const struct gd_numbers *numbers, const struct gd_expr *expr,
                               unsigned *error)
{
    struct gd_numbers copy = *numbers;
    struct gd_observation seen = observe_numbers(&copy);

    return gd_expr_evaluate(expr, &seen, error);
}

bool gd_numbers_value(const struct gd_numbers *numbers, const struct gd_expr *expr, double *ret,
                      unsigned *error)
{
    struct gd_numbers copy = *numbers;
    struct gd_observation seen = observe_numbers(&copy);

    return gd_expr_number(expr, &seen, ret, error);
}

/* ---- names ----------------------------------------------------------------------------------- */

#define MAX_NAMES 16

/* "loss1" is not a slip of "loss". */
static bool is_slip(const char *typed, const char *name)
{
    size_t a = strlen(typed), b = strlen(name);
    bool numbered = a > 0 && b > 0 && isdigit((unsigned char)typed[a - 1]) != 0;
    bool numbers = b > 0 && isdigit((unsigned char)name[b - 1]) != 0;

    return numbered == numbers && !strchr(typed, '(') && gd_similar_slip(typed, name);
}

/* The known metric that was probably meant; NULL: it is known itself, or resembles none. */
static const char *find_meant(const struct gd_session *session, const char *name)
{
    static const char *const usual[] = {"loss",    "lr",        "epoch", "batch",
                                        "elapsed", "step_time", "step"};
    const char *meant = NULL;

    for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++) {
        if (strcmp(usual[i], name) == 0) {
            return NULL;
        }
        meant = !meant && is_slip(name, usual[i]) ? usual[i] : meant;
    }
    for (int i = 0; session && i < session->scalar_count; i++) {
        const char *known = session->scalar[i].name;
        if (strcmp(known, name) == 0) {
            return NULL;
        }
        meant = !meant && is_slip(name, known) ? known : meant;
    }
    return meant;
}

bool gd_numbers_is_figure(const struct gd_session *session, const char *name, size_t *length,
                          enum gd_statistic *statistic)
{
    const char *dot = strrchr(name, '.');
    enum gd_statistic found = dot ? gd_statistic_find(dot + 1, NULL) : GD_STAT_NONE;
    char node[512];
    gd_node_id id;

    if (found == GD_STAT_NONE || dot == name || (size_t)(dot - name) >= sizeof(node) ||
        (session && gd_session_scalar(session, name))) {
        return false;
    }
    *length = (size_t)(dot - name);
    snprintf(node, sizeof(node), "%.*s", (int)*length, name);
    if (statistic) {
        *statistic = found;
    }
    bool early = !session || gd_session_step(session) == 0;
    return (early && strchr(node, '.')) ||
           (session && gd_graph_find(session->graph, node, &id, NULL) == GD_OK);
}

int gd_numbers_check(const struct gd_session *session, const struct gd_expr *expr,
                     struct gd_err *err)
{
    const char *names[MAX_NAMES];
    size_t count = expr ? gd_expr_names(expr, names, MAX_NAMES) : 0;

    for (size_t i = 0; i < count && i < MAX_NAMES; i++) {
        struct gd_expr_function function;
        char quoted[GD_EXPR_NUMBER + 3];
        const char *name = gd_expr_number_in(names[i], &function);
        const char *meant = find_meant(session, name);
        size_t length = 0;
        snprintf(quoted, sizeof(quoted), "\"%.*s\"", GD_EXPR_NUMBER, name);
        if (gd_numbers_is_figure(session, name, &length, NULL) &&
            !strstr(gd_expr_text(expr), quoted)) {
            return gd_fail(
                err, GD_EINVAL,
                "%.150s is a statistic of a tensor, but this condition uses metrics such "
                "as loss and step; to stop on the tensor: watch EXPR on %.*s",
                name, (int)(length < 150 ? length : 150), name);
        }
        if (meant && !strstr(gd_expr_text(expr), quoted)) {
            return gd_fail(err, GD_ENOTFOUND,
                           "there is no metric \"%.60s\"; did you mean \"%.60s\"? Put the name of "
                           "a metric that comes later in double quotes",
                           name, meant);
        }
    }
    return GD_OK;
}

/* ---- what must hold --------------------------------------------------------------------- */

/* That many reports later at the earliest; a step has one. */
static bool need_reports(const struct gd_past_values *past, const struct gd_past_best *best,
                         int64_t count, struct gd_test_of *ret)
{
    int64_t since_best = count - best->reports, at_all = count + 1 - past->reports;
    int64_t more = since_best > at_all ? since_best : at_all;

    *ret = (struct gd_test_of){
        .number = "step", .op = GD_CMP_GE, .value = (double)(past->step + more), .moves = true};
    return more > 0;
}

/* The end of the step at which the last report is new is still to come. */
static bool is_unseen(const struct gd_session *session, const struct gd_scalar *scalar)
{
    const struct gd_happened *last = &session->impl->happened;
    int64_t seen_at = scalar->step + scalar->late;

    return session->reached <= seen_at &&
           !(last->kind == GD_HAPPENED_STEP_END && last->step >= seen_at);
}

bool gd_numbers_bound(void *ctx, const struct gd_expr_function *function, enum gd_comparison op,
                      double value, struct gd_test_of *ret)
{
    const struct gd_scalar *scalar = gd_session_scalar(ctx, function->number);
    bool when_1 = gd_compare(1, op, value) && !gd_compare(0, op, value);

    if (!scalar) {
        return false; /* the engine must say that it is unknown */
    }
    const struct gd_past_best *best =
        function->least ? &scalar->values.least : &scalar->values.most;
    bool better =
        function->least ? op == GD_CMP_LT || op == GD_CMP_LE : op == GD_CMP_GT || op == GD_CMP_GE;
    switch (function->kind) {
    case GD_FN_STALL: return when_1 && need_reports(&scalar->values, best, function->count, ret);
    case GD_FN_IMPROVED:
        *ret = (struct gd_test_of){scalar->name, function->least ? GD_CMP_LT : GD_CMP_GT,
                                   best->value, .moves = true};
        return when_1 && !isnan(best->value) && !(best->reports == 0 && is_unseen(ctx, scalar));
    case GD_FN_ISNAN: *ret = (struct gd_test_of){scalar->name, .is_nan = true}; return when_1;
    case GD_FN_BEST: /* it gets there only by a report that is there */
        *ret = (struct gd_test_of){scalar->name, op, value, .moves = true};
        return better && !gd_compare(best->value, op, value);
    default: return false;
    }
}
