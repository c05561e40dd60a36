// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/watch/condition.h"

/* ---- what it takes ------------------------------------------------------------------------- */

/* The condition with its values as judged: completed, by parameter. */
struct judged {
    const struct gd_condition *condition;
    bool on[GD_MAX_CONDITION_PARAMS]; /* given, default, or hidden */
    double value[GD_MAX_CONDITION_PARAMS];
};

static void fill_values(const struct gd_condition *condition,
                        const struct gd_condition_value *values, size_t count, struct judged *ret)
{
    struct gd_condition_value all[GD_MAX_CONDITION_PARAMS];
    int used = gd_condition_complete(condition, values, count, all, NULL);

    *ret = (struct judged){.condition = condition};
    for (int i = 0; i < condition->param_count; i++) {
        const struct gd_condition_param *param = &condition->param[i];
        ret->value[i] = param->value;
        ret->on[i] = param->hidden || (param->support && param->has_default);
        for (int j = 0; j < used; j++) {
            if (all[j].name != param->name) {
                continue;
            }
            ret->value[i] = all[j].value;
            ret->on[i] = true;
        }
    }
}

static bool is_test(const struct judged *judged, int i)
{
    return judged->on[i] && judged->condition->param[i].statistic != GD_STAT_NONE;
}

static double value_of(const struct judged *judged, const char *name, double otherwise)
{
    for (int i = 0; i < judged->condition->param_count; i++) {
        if (judged->on[i] && strcmp(judged->condition->param[i].name, name) == 0) {
            return judged->value[i];
        }
    }
    return otherwise;
}

static struct gd_range range_of(const struct judged *judged)
{
    double limit = value_of(judged, "limit", INFINITY);

    return (struct gd_range){value_of(judged, "range_start_inclusive", -limit),
                             value_of(judged, "range_end_inclusive", limit)};
}

static unsigned needs_of(const struct judged *judged)
{
    unsigned needs = gd_statistic_needs(judged->condition->always.statistic) |
                     (judged->condition->records_bins ? (unsigned)GD_NEED_BINS : 0u);

    for (int i = 0; i < judged->condition->param_count; i++) {
        if (is_test(judged, i)) {
            needs |= gd_statistic_needs(judged->condition->param[i].statistic);
        }
    }
    return needs;
}

void gd_condition_want(const struct gd_condition *condition,
                       const struct gd_condition_value *values, size_t count,
                       struct gd_condition_want *ret)
{
    struct judged judged;

    fill_values(condition, values, count, &judged);
    memset(ret, 0, sizeof(*ret));
    ret->needs = needs_of(&judged);
    ret->rtol = value_of(&judged, "rtol", GD_RTOL);
    ret->atol = value_of(&judged, "atol", GD_ATOL);
    ret->equal_nan = value_of(&judged, "equal_nan", 0) != 0;
    ret->dead_steps = (uint32_t)value_of(&judged, "steps", GD_DEAD_STEPS);
    if (ret->needs & GD_NEED_RANGE) {
        ret->range = range_of(&judged);
    }
}

void gd_condition_want_expr(const struct gd_expr *expr, struct gd_condition_want *ret)
{
    *ret = (struct gd_condition_want){.needs = gd_expr_needs(expr),
                                      .rtol = GD_RTOL,
                                      .atol = GD_ATOL,
                                      .dead_steps = GD_DEAD_STEPS};
}

/* ---- triggers ------------------------------------------------------------------------------ */

/* Unknown for some tensors that nothing else marks, or unknown where statistics are computed. */
static bool tells_all(const struct gd_comparison_of *test, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (test[i].statistic == GD_STAT_COSINE ||
            (gd_statistic_needs(test[i].statistic) & GD_NEED_SERIES)) {
            return false;
        }
    }
    return count > 0;
}

/* Appends to `count` comparisons those that find what cannot be checked. */
static size_t add_unclear(unsigned needs, bool change, struct gd_comparison_of *ret, size_t count,
                          size_t max)
{
    if (count + 3 > max) {
        return 0;
    }
    if (needs & GD_NEED_FINITE) {
        ret[count++] = (struct gd_comparison_of){GD_STAT_NONFINITE, GD_CMP_GT, 0};
        ret[count++] = (struct gd_comparison_of){GD_STAT_COUNT, GD_CMP_LE, 0};
    }
    if (change) {
        ret[count++] = (struct gd_comparison_of){GD_STAT_UNPAIRED, GD_CMP_GT, 0};
    }
    return count;
}

/* Some statistic is of a change, which is unknown where the previous step had NaN or Inf. */
static bool has_change(unsigned needs)
{
    return (needs & GD_NEED_FINITE) && (needs & GD_NEED_PREVIOUS);
}

size_t gd_condition_triggers(const struct gd_condition *condition,
                             const struct gd_condition_value *values, size_t count,
                             struct gd_comparison_of *ret, size_t max)
{
    struct judged judged;
    size_t used = 0;

    fill_values(condition, values, count, &judged);
    unsigned needs = needs_of(&judged);
    bool change = has_change(needs);
    if (condition->aggregate || max < 8) {
        return 0;
    }
    if (condition->always.statistic) {
        ret[used++] = condition->always;
    }
    for (int i = 0; i < condition->param_count; i++) {
        if (is_test(&judged, i)) {
            ret[used++] = (struct gd_comparison_of){condition->param[i].statistic,
                                                    condition->param[i].op, judged.value[i]};
        }
    }
    /* Of the seventeen, "not changed", whose statistic is a count, is not checked on those
     * either. */
    if (condition->wire != GD_WIRE_OWN && condition->always.statistic != GD_STAT_NONFINITE) {
        needs |= GD_NEED_FINITE;
    }
    return tells_all(ret, used) ? add_unclear(needs, change, ret, used, max) : 0;
}

size_t gd_condition_triggers_expr(const struct gd_expr *expr, struct gd_comparison_of *ret,
                                  size_t max)
{
    unsigned needs = gd_expr_needs(expr);
    size_t used = gd_expr_simple(expr, ret, max);

    return tells_all(ret, used) ? add_unclear(needs, has_change(needs), ret, used, max) : 0;
}

/* ---- judging ------------------------------------------------------------------------------- */

/* Like snprintf, which would take most of the time of judging. */
static void put_name(struct gd_hit_param *param, const char *name)
{
    size_t len = strnlen(name, sizeof(param->name) - 1);

    memcpy(param->name, name, len);
    param->name[len] = '\0';
}

static void list_params(const struct judged *judged, struct gd_verdict *ret)
{
    ret->param_count = judged->condition->param_count;
    for (int i = 0; i < ret->param_count; i++) {
        struct gd_hit_param *param = &ret->param[i];
        put_name(param, judged->condition->param[i].name);
        param->disabled = !judged->on[i];
        param->set_value = judged->on[i] ? judged->value[i] : 0;
    }
}

/* What keeps MindInsight's conditions from examining a tensor at all. */
static unsigned forbidden_needs(const struct gd_condition *condition, unsigned needs,
                                const struct gd_observation *seen)
{
    if (condition->wire == GD_WIRE_OWN || condition->always.statistic == GD_STAT_NONFINITE) {
        return 0;
    }
    if (condition->wire == GD_WIRE_OVERFLOW_FLAG) {
        return GD_HIT_NO_FIGURE;
    }
    unsigned error = gd_statistic_errors(seen);
    if ((needs & GD_NEED_PREVIOUS) && !seen->stats->has_prev) {
        error |= GD_HIT_NO_PREVIOUS | seen->error;
    }
    return error;
}

static bool test_holds(const struct gd_comparison_of *test, bool two_sided,
                       const struct gd_observation *seen, double *actual, unsigned *error)
{
    unsigned why;
    bool decided, truth;

    if (!gd_statistic_value(test->statistic, seen, actual, &why)) {
        decided = gd_statistic_at_least(test->statistic, seen, actual) &&
                  gd_compare_at_least(*actual, test->op, test->value, &truth);
        *error |= decided ? 0 : why;
        return decided && truth;
    }
    return gd_compare(two_sided ? fabs(*actual) : *actual, test->op, test->value);
}

/* All tests, each by itself. If several are meant together, one without a statistic for this value
 * leaves the verdict to the others. */
static void test_all(const struct judged *judged, const struct gd_observation *seen,
                     struct gd_verdict *ret)
{
    const struct gd_condition *condition = judged->condition;
    unsigned error = 0;
    double actual = 0;
    bool known = false;
    bool hit =
        condition->always.statistic && test_holds(&condition->always, false, seen, &actual, &error);

    for (int i = 0; i < condition->param_count; i++) {
        const struct gd_condition_param *param = &condition->param[i];
        struct gd_comparison_of test = {param->statistic, param->op, judged->value[i]};
        if (!is_test(judged, i)) {
            continue;
        }
        unsigned why = 0;
        ret->param[i].hit =
            test_holds(&test, param->two_sided, seen, &ret->param[i].actual_value, &why);
        hit |= ret->param[i].hit;
        if (why) {
            ret->param[i].actual_value = NAN;
        }
        known |= !why;
        error |= why;
    }
    if (known && error == GD_HIT_NO_FIGURE) {
        error = 0;
    }
    ret->outcome = hit ? GD_IS_HIT : error ? GD_NOT_CHECKED : GD_NO_HIT;
    ret->error = hit ? 0 : error;
}

/* No value, where that is what is looked for: missing since it was last computed, or always. */
static void never_came(const struct judged *judged, const struct gd_observation *seen,
                       struct gd_verdict *ret)
{
    double age = seen->value_step < 0 ? fmax(1, (double)seen->step)
                                      : (double)(seen->step - seen->value_step);
    bool hit = false;

    for (int i = 0; i < judged->condition->param_count; i++) {
        const struct gd_condition_param *param = &judged->condition->param[i];
        if (!is_test(judged, i)) {
            continue;
        }
        ret->param[i].actual_value = age;
        ret->param[i].hit = gd_compare(age, param->op, judged->value[i]);
        hit |= ret->param[i].hit;
    }
    ret->outcome = hit ? GD_IS_HIT : GD_NO_HIT;
}

void gd_condition_judge(const struct gd_condition *condition,
                        const struct gd_condition_value *values, size_t count,
                        const struct gd_observation *seen, struct gd_verdict *ret)
{
    struct judged judged;

    memset(ret, 0, sizeof(*ret));
    fill_values(condition, values, count, &judged);
    list_params(&judged, ret);
    if (!seen->stats) {
        unsigned error = gd_statistic_errors(seen);
        if (condition->fires_without_value && (error & (GD_HIT_NO_VALUE | GD_HIT_NOT_CAPTURED))) {
            never_came(&judged, seen, ret);
            return;
        }
        ret->error = error;
    } else if (seen->stats->count < condition->least_count) {
        return;
    } else {
        ret->error = forbidden_needs(condition, needs_of(&judged), seen);
    }
    ret->outcome = GD_NOT_CHECKED;
    if (!ret->error) {
        test_all(&judged, seen, ret);
    }
}

static void add_param(struct gd_verdict *verdict, const char *name, double actual, double set)
{
    if (verdict->param_count == GD_MAX_HIT_PARAMS) {
        return;
    }
    struct gd_hit_param *param = &verdict->param[verdict->param_count++];
    put_name(param, name);
    param->actual_value = actual;
    param->set_value = set;
    param->hit = verdict->outcome == GD_IS_HIT;
}

static void list_figures(const struct gd_expr *expr, const struct gd_observation *seen,
                         struct gd_verdict *ret)
{
    struct gd_comparison_of test[GD_MAX_HIT_PARAMS];
    enum gd_statistic figure[GD_MAX_HIT_PARAMS];
    const char *name[GD_MAX_HIT_PARAMS];
    size_t tested = gd_expr_simple(expr, test, GD_MAX_HIT_PARAMS);
    size_t figures = gd_expr_figures(expr, figure, GD_MAX_HIT_PARAMS);
    size_t names = gd_expr_names(expr, name, GD_MAX_HIT_PARAMS);
    unsigned error;
    double value;

    for (size_t i = 0; i < figures && i < GD_MAX_HIT_PARAMS; i++) {
        double set = NAN;
        for (size_t j = 0; j < tested; j++) {
            if (test[j].statistic == figure[i] && isnan(set)) {
                set = test[j].value;
            }
        }
        if (gd_statistic_value(figure[i], seen, &value, &error)) {
            add_param(ret, gd_statistic_name(figure[i]), value, set);
        }
    }
    for (size_t i = 0; i < names && i < GD_MAX_HIT_PARAMS; i++) {
        if (seen->scalar && seen->scalar(seen->scalar_ctx, name[i], &value)) {
            add_param(ret, name[i], value, NAN);
        }
    }
}

void gd_condition_judge_expr(const struct gd_expr *expr, const struct gd_observation *seen,
                             struct gd_verdict *ret)
{
    memset(ret, 0, sizeof(*ret));
    switch (gd_expr_evaluate(expr, seen, &ret->error)) {
    case GD_TRUE: ret->outcome = GD_IS_HIT; break;
    case GD_FALSE: ret->outcome = GD_NO_HIT; break;
    case GD_UNKNOWN: ret->outcome = GD_NOT_CHECKED; break;
    }
    if (ret->outcome != GD_NO_HIT) { /* most often: then no one looks */
        list_figures(expr, seen, ret);
    }
}

void gd_hit_error_text(unsigned error, char *ret, size_t size)
{
    static const struct {
        enum gd_hit_error bit;
        const char *text;
    } words[] = {
        {GD_HIT_NAN, "NaN"},
        {GD_HIT_INF, "Inf"},
        {GD_HIT_NO_PREVIOUS, "no value of the previous step"},
        {GD_HIT_NO_MEMORY, "out of memory"},
        {GD_HIT_NO_HISTORY, "not enough steps seen yet"},
        {GD_HIT_NO_VALUE, "no value"},
        {GD_HIT_EMPTY, "no element"},
        {GD_HIT_NOT_NUMBERS, "not readable as numbers"},
        {GD_HIT_NOT_CAPTURED, "the value was gone after its operator"},
        {GD_HIT_NO_FIGURE, "the statistic is undefined here"},
        {GD_HIT_PREVIOUS_NOT_FINITE, "NaN or Inf in the previous step"},
        {GD_HIT_GUARD_UNKNOWN, "the \"if\" condition is unknown"},
        {GD_HIT_NOT_RUN, "its operator has not run in this step"},
        {GD_HIT_GONE, "the program released it"},
    };
    size_t len = 0;

    if (size) {
        ret[0] = '\0';
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (!(error & words[i].bit) || len >= size) {
            continue;
        }
        int wrote = snprintf(ret + len, size - len, "%s%s", len ? ", " : "", words[i].text);
        len += wrote > 0 ? (size_t)wrote : 0;
    }
}
