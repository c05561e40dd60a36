// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/condition.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define EPSILON 1e-9 /* of the relative update; no release lets it be changed */

/* ---- the table ----------------------------------------------------------------------------- */

static const struct gd_condition_param initial[] = {
    {.name = "zero_percentage_ge", .range = GD_RANGE_PERCENT, .has_default = true, .value = 100},
    {.name = "max_gt"},
    {.name = "min_lt"},
};
static const struct gd_condition_param above[] = {
    {.name = "abs_mean_gt", .range = GD_RANGE_NOT_NEGATIVE},
    {.name = "max_gt"},
    {.name = "min_gt"},
    {.name = "mean_gt"},
};
static const struct gd_condition_param below[] = {
    {.name = "abs_mean_lt", .range = GD_RANGE_NOT_NEGATIVE},
    {.name = "max_lt"},
    {.name = "min_lt"},
    {.name = "mean_lt"},
};
static const struct gd_condition_param not_changed[] = {
    {.name = "rtol", .range = GD_RANGE_NOT_NEGATIVE, .has_default = true, .value = 1e-5},
    {.name = "atol", .has_default = true, .value = 1e-8, .hidden = true},
    {.name = "equal_nan", .type = GD_PARAM_BOOL, .has_default = true, .hidden = true},
};
static const struct gd_condition_param change_above[] = {
    {.name = "abs_mean_update_ratio_gt",
     .range = GD_RANGE_NOT_NEGATIVE,
     .has_default = true,
     .value = 0.1},
    {.name = "epsilon", .has_default = true, .value = EPSILON, .hidden = true},
};
static const struct gd_condition_param change_below[] = {
    {.name = "abs_mean_update_ratio_lt",
     .range = GD_RANGE_NOT_NEGATIVE,
     .has_default = true,
     .value = 1e-4},
    {.name = "epsilon", .has_default = true, .value = EPSILON, .hidden = true},
};
static const struct gd_condition_param zeros[] = {
    {.name = "zero_percentage_ge", .range = GD_RANGE_PERCENT, .has_default = true, .value = 100},
};
static const struct gd_condition_param in_range[] = {
    {.name = "range_start_inclusive", .support = true},
    {.name = "range_end_inclusive", .support = true},
    {.name = "range_percentage_lt", .range = GD_RANGE_PERCENT, .needs_range = true},
    {.name = "range_percentage_gt", .range = GD_RANGE_PERCENT, .needs_range = true},
    {.name = "max_min_lt", .range = GD_RANGE_POSITIVE},
    {.name = "max_min_gt", .range = GD_RANGE_NOT_NEGATIVE},
};

#define LOOK_INPUTS "the inputs of the operator"
#define LOOK_UPDATE "the learning rate, the size of the gradient, the optimizer"

static const struct gd_condition conditions[] = {
    {.id = "weight_initialization",
     .abbr = "WI",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_INITIALIZATION,
     .initial_only = true,
     .fires = "the initial weights look wrong",
     .look = "the initializer that was chosen",
     .param = initial,
     .param_count = 3},
    {.id = "weight_overflow",
     .abbr = "WO",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_NOT_FINITE,
     .fires = "a weight is NaN or infinite",
     .look = "the learning rate (too high), the gradient (too large), the optimizer"},
    {.id = "weight_too_large",
     .abbr = "WL",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_TOO_LARGE,
     .fires = "a statistic of the weight is above the threshold",
     .look = LOOK_UPDATE,
     .param = above,
     .param_count = 4},
    {.id = "weight_too_small",
     .abbr = "WS",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_TOO_SMALL,
     .fires = "a statistic of the weight is below the threshold",
     .look = LOOK_UPDATE,
     .param = below,
     .param_count = 4},
    {.id = "weight_not_changed",
     .abbr = "WNC",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_NOT_CHANGED,
     .fires = "every element is close to that of the previous step",
     .look = "the learning rate (too low), the gradient (near zero), the optimizer (skips it), "
             "whether it is frozen on purpose",
     .param = not_changed,
     .param_count = 3},
    {.id = "weight_change_too_large",
     .abbr = "WCL",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_CHANGE_TOO_LARGE,
     .fires = "the relative update is above the threshold",
     .look = "the learning rate (too high), the gradient, the optimizer",
     .param = change_above,
     .param_count = 2},
    {.id = "weight_change_too_small",
     .abbr = "WCS",
     .target = GD_COND_WEIGHT,
     .wire = GD_WIRE_CHANGE_TOO_SMALL,
     .fires = "the relative update is below the threshold",
     .look = "the learning rate (too low), the gradient, the optimizer",
     .param = change_below,
     .param_count = 2},
    {.id = "gradient_vanishing",
     .abbr = "GV",
     .target = GD_COND_GRADIENT,
     .wire = GD_WIRE_TOO_SMALL,
     .fires = "a statistic of the gradient is below the threshold",
     .look = LOOK_INPUTS ", upstream to the first that is too small",
     .param = below,
     .param_count = 4},
    {.id = "gradient_too_large",
     .abbr = "GL",
     .target = GD_COND_GRADIENT,
     .wire = GD_WIRE_TOO_LARGE,
     .fires = "a statistic of the gradient is above the threshold",
     .look = LOOK_INPUTS ", upstream to the first that is too large",
     .param = above,
     .param_count = 4},
    {.id = "gradient_exploding",
     .abbr = "GE",
     .target = GD_COND_GRADIENT,
     .wire = GD_WIRE_NOT_FINITE,
     .fires = "a gradient is NaN or infinite",
     .look = LOOK_INPUTS ", upstream to the first that is not finite"},
    {.id = "tensor_overflow",
     .abbr = "TO",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_NOT_FINITE,
     .fires = "an element is NaN or infinite",
     .look = LOOK_INPUTS},
    {.id = "operator_overflow",
     .abbr = "OO",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_OVERFLOW_FLAG,
     .ascend_only = true,
     .fires = "the device raised its overflow flag",
     .look = LOOK_INPUTS " and its data type"},
    {.id = "tensor_too_large",
     .abbr = "TL",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_TOO_LARGE,
     .fires = "a statistic is above the threshold",
     .look = LOOK_INPUTS,
     .param = above,
     .param_count = 4},
    {.id = "tensor_too_small",
     .abbr = "TS",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_TOO_SMALL,
     .fires = "a statistic is below the threshold",
     .look = LOOK_INPUTS,
     .param = below,
     .param_count = 4},
    {.id = "tensor_all_zero",
     .abbr = "TZ",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_ALL_ZERO,
     .fires = "the share of zeros reaches the threshold",
     .look = LOOK_INPUTS,
     .param = zeros,
     .param_count = 1},
    {.id = "tensor_range",
     .abbr = "TR",
     .target = GD_COND_TENSOR,
     .wire = GD_WIRE_RANGE,
     .fires = "the share of elements in a range, or their spread, is off",
     .look = LOOK_INPUTS,
     .param = in_range,
     .param_count = 6},
    {.id = "activation_range",
     .abbr = "AR",
     .target = GD_COND_ACTIVATION,
     .wire = GD_WIRE_RANGE,
     .fires = "the share of elements in a range, or their spread, is off",
     .look = LOOK_INPUTS,
     .param = in_range,
     .param_count = 6},
};

#define CONDITION_COUNT (sizeof conditions / sizeof *conditions)

const struct gd_condition *gd_condition_at(size_t index)
{
    return index < CONDITION_COUNT ? &conditions[index] : NULL;
}

int gd_condition_find(const char *name, const struct gd_condition **ret, struct gd_err *err)
{
    char all[256] = "";
    size_t len = 0;
    for (size_t i = 0; i < CONDITION_COUNT; i++) {
        if (strcasecmp(conditions[i].id, name) == 0 || strcasecmp(conditions[i].abbr, name) == 0) {
            *ret = &conditions[i];
            return GD_OK;
        }
        len += (size_t)snprintf(all + len, sizeof all - len, " %s", conditions[i].abbr);
    }
    return gd_fail(err, GD_ENOTFOUND, "there is no condition \"%s\"; there are%s", name, all);
}

const struct gd_condition_param *gd_condition_param(const struct gd_condition *condition,
                                                    const char *name)
{
    for (int i = 0; i < condition->param_count; i++)
        if (strcmp(condition->param[i].name, name) == 0)
            return &condition->param[i];
    return NULL;
}

const char *gd_condition_selector(const struct gd_condition *condition)
{
    static const char *const selectors[] = {
        [GD_COND_WEIGHT] = "weights",
        [GD_COND_GRADIENT] = "gradients",
        [GD_COND_TENSOR] = "all",
        [GD_COND_ACTIVATION] = "activations",
        [GD_COND_SCALAR] = "loss",
    };
    return selectors[condition->target];
}

/* ---- checking ------------------------------------------------------------------------------ */

static int check_range(const struct gd_condition_param *param, double value, struct gd_err *err)
{
    if (!isfinite(value))
        return gd_fail(err, GD_EINVAL, "%s must be a finite number", param->name);
    if (param->range == GD_RANGE_NOT_NEGATIVE && value < 0)
        return gd_fail(err, GD_EINVAL, "%s must not be negative", param->name);
    if (param->range == GD_RANGE_POSITIVE && value <= 0)
        return gd_fail(err, GD_EINVAL, "%s must be above 0", param->name);
    if (param->range == GD_RANGE_PERCENT && (value < 0 || value > 100))
        return gd_fail(err, GD_EINVAL, "%s is a percentage: 0 to 100", param->name);
    return GD_OK;
}

static int unknown_param(const struct gd_condition *condition, const char *name, struct gd_err *err)
{
    char all[256] = "";
    size_t len = 0;
    for (int i = 0; i < condition->param_count; i++)
        if (!condition->param[i].hidden)
            len += (size_t)snprintf(all + len, sizeof all - len, " %s", condition->param[i].name);
    if (!condition->param_count)
        return gd_fail(err, GD_EINVAL, "%s takes no parameters", condition->id);
    return gd_fail(err, GD_EINVAL, "%s has no parameter \"%s\"; it has%s", condition->id, name,
                   all);
}

static int check_one(const struct gd_condition *condition, const struct gd_condition_value *value,
                     struct gd_err *err)
{
    const struct gd_condition_param *param = gd_condition_param(condition, value->name);
    if (!param || param->hidden)
        return unknown_param(condition, value->name, err);
    if (param->type != value->type)
        return gd_fail(err, GD_EINVAL, "%s must be %s", param->name,
                       param->type == GD_PARAM_BOOL ? "true or false" : "a number");
    return check_range(param, value->value, err);
}

static const struct gd_condition_value *given(const struct gd_condition_value *values, size_t count,
                                              const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(values[i].name, name) == 0)
            return &values[i];
    return NULL;
}

static int check_support(const struct gd_condition_param *test,
                         const struct gd_condition_value *values, size_t count, struct gd_err *err)
{
    const struct gd_condition_value *start = given(values, count, "range_start_inclusive");
    const struct gd_condition_value *end = given(values, count, "range_end_inclusive");
    if (test && test->needs_range && (!start || !end))
        return gd_fail(err, GD_EINVAL,
                       "%s needs range_start_inclusive and range_end_inclusive with it",
                       test->name);
    if ((start || end) && !(test && test->needs_range))
        return gd_fail(err, GD_EINVAL,
                       "%s goes only with range_percentage_lt or range_percentage_gt",
                       start ? start->name : end->name);
    if (start && end && start->value > end->value)
        return gd_fail(err, GD_EINVAL, "range_start_inclusive is above range_end_inclusive");
    return GD_OK;
}

int gd_condition_check(const struct gd_condition *condition,
                       const struct gd_condition_value *values, size_t count, struct gd_err *err)
{
    const struct gd_condition_param *test = NULL;
    for (size_t i = 0; i < count; i++) {
        int rc = check_one(condition, &values[i], err);
        if (rc)
            return rc;
        if (given(values, i, values[i].name))
            return gd_fail(err, GD_EINVAL, "%s is given twice", values[i].name);
        const struct gd_condition_param *param = gd_condition_param(condition, values[i].name);
        if (param->support)
            continue;
        if (test)
            return gd_fail(err, GD_EINVAL, "%s and %s cannot be tested by one watchpoint: set two",
                           test->name, param->name);
        test = param;
    }
    return check_support(test, values, count, err);
}

int gd_condition_available(const struct gd_condition *condition, bool ascend,
                           bool before_first_step, struct gd_err *err)
{
    if (condition->ascend_only && !ascend)
        return gd_fail(err, GD_EUNSUPPORTED, "%s needs an Ascend device", condition->id);
    if (condition->initial_only && !before_first_step)
        return gd_fail(err, GD_ESTATE,
                       "%s can be checked only before the first step, which is over",
                       condition->id);
    return GD_OK;
}

/* ---- the wire ------------------------------------------------------------------------------ */

size_t gd_condition_encode(const struct gd_condition *condition,
                           const struct gd_condition_value *values, size_t count,
                           struct gd_remote_param ret[GD_MAX_CONDITION_PARAMS])
{
    for (int i = 0; i < condition->param_count; i++) {
        const struct gd_condition_param *param = &condition->param[i];
        const struct gd_condition_value *value = given(values, count, param->name);
        bool enabled = value || param->hidden;
        ret[i] = (struct gd_remote_param){.name = param->name, .disabled = !enabled};
        if (enabled)
            ret[i].value = value ? value->value : param->value;
    }
    return (size_t)condition->param_count;
}

/* ---- evaluation ---------------------------------------------------------------------------- */

static const struct gd_remote_param *enabled(const struct gd_remote_param *params, size_t count,
                                             const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!params[i].disabled && strcmp(params[i].name, name) == 0)
            return &params[i];
    return NULL;
}

void gd_condition_options(int wire, const struct gd_remote_param *params, size_t count,
                          struct gd_stats_options *ret)
{
    const struct gd_remote_param *found;
    memset(ret, 0, sizeof *ret);
    ret->rtol = (found = enabled(params, count, "rtol")) ? found->value : 1e-5;
    ret->atol = (found = enabled(params, count, "atol")) ? found->value : 1e-8;
    if (wire != GD_WIRE_RANGE)
        return;
    const struct gd_remote_param *start = enabled(params, count, "range_start_inclusive");
    const struct gd_remote_param *end = enabled(params, count, "range_end_inclusive");
    ret->range_count = start || end ? 1 : 0;
    ret->range[0].lo = start ? start->value : -INFINITY;
    ret->range[0].hi = end ? end->value : INFINITY;
}

static double percentage(uint64_t part, uint64_t count)
{
    return count ? (double)part * 100 / (double)count : 0;
}

/* The statistic that a parameter's name begins with; NaN when there is none of that name. */
static double statistic(const char *name, size_t len, const struct gd_stats *stats)
{
    struct {
        const char *name;
        double value;
    } const known[] = {
        {"max", stats->max},
        {"min", stats->min},
        {"max_min", stats->max - stats->min},
        {"mean", stats->mean},
        {"abs_mean", stats->abs_mean},
        {"zero_percentage", percentage(stats->zero, stats->count)},
        {"range_percentage", percentage(stats->in_range[0], stats->count)},
        {"abs_mean_update_ratio", stats->mean_abs_delta / (stats->mean_abs_prev + EPSILON)},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == len && memcmp(known[i].name, name, len) == 0)
            return known[i].value;
    return NAN;
}

static bool compare(const char *how, double actual, double limit)
{
    if (strcmp(how, "gt") == 0)
        return actual > limit;
    if (strcmp(how, "lt") == 0)
        return actual < limit;
    if (strcmp(how, "ge") == 0)
        return actual >= limit;
    return strcmp(how, "le") == 0 && actual <= limit;
}

static bool evaluate_param(const struct gd_remote_param *param, const struct gd_stats *stats,
                           struct gd_hit_param *hit)
{
    const char *end = strrchr(param->name, '_');
    double actual = end ? statistic(param->name, (size_t)(end - param->name), stats) : NAN;
    if (param->disabled || isnan(actual))
        return false;
    hit->actual_value = actual;
    hit->hit = compare(end + 1, actual, param->value);
    return hit->hit;
}

static unsigned errors_of(int wire, const struct gd_stats *stats)
{
    unsigned bits = 0;
    if (stats->nan)
        bits |= GD_HIT_NAN;
    if (stats->pos_inf || stats->neg_inf)
        bits |= GD_HIT_INF;
    if (wire == GD_WIRE_NOT_FINITE)
        bits = 0;
    bool change = wire >= GD_WIRE_CHANGE_TOO_LARGE && wire <= GD_WIRE_NOT_CHANGED;
    if (change && !stats->has_prev)
        bits |= GD_HIT_NO_PREVIOUS;
    return bits;
}

unsigned gd_condition_evaluate(int wire, const struct gd_remote_param *params, size_t count,
                               const struct gd_stats *stats, struct gd_hit_param *hits, bool *fired)
{
    unsigned bits = errors_of(wire, stats);
    *fired = false;
    for (size_t i = 0; i < count; i++) {
        memset(&hits[i], 0, sizeof hits[i]);
        snprintf(hits[i].name, sizeof hits[i].name, "%s", params[i].name);
        hits[i].disabled = params[i].disabled;
        hits[i].set_value = params[i].value;
    }
    if (wire == GD_WIRE_NOT_FINITE)
        *fired = stats->nan || stats->pos_inf || stats->neg_inf;
    if (wire == GD_WIRE_NOT_CHANGED && !bits)
        *fired = stats->mismatch == 0;
    if (bits)
        return bits;
    for (size_t i = 0; i < count; i++)
        if (evaluate_param(&params[i], stats, &hits[i]))
            *fired = true;
    return bits;
}
