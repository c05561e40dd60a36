// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/watch/condition.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/graph/similar.h"
#include "engine/watch/condition_impl.h"

#define STEPS_MAX 1000000

/* ---- finding ------------------------------------------------------------------------------- */

const struct gd_condition *gd_condition_at(size_t index)
{
    return index < gd_condition_total ? &gd_condition_table[index] : NULL;
}

/* Appends " a, b, c" as far as there is room. */
static void add_name(char *list, size_t size, const char *name)
{
    size_t len = strlen(list);

    snprintf(list + len, size - len, "%s%s", len ? ", " : "", name);
}

static int no_condition(const char *name, struct gd_err *err)
{
    const struct gd_condition *nearest = NULL;
    size_t best = 4; /* typing slips */
    char all[256] = "";

    for (size_t i = 0; i < gd_condition_total; i++) {
        const struct gd_condition *condition = &gd_condition_table[i];
        size_t distance =
            gd_similar_suggestion(name, strlen(name), condition->id, strlen(condition->id), best);
        add_name(all, sizeof(all), condition->abbr);
        if (distance < best) {
            best = distance;
            nearest = condition;
        }
    }
    for (size_t i = 0; i < gd_condition_total && !nearest && strlen(name) > 2; i++) {
        if (strcasestr(gd_condition_table[i].id, name)) {
            nearest = &gd_condition_table[i];
        }
    }
    if (nearest) {
        return gd_fail(err, GD_ENOTFOUND,
                       "there is no condition \"%.60s\"; did you mean %s (%s)? There are %s", name,
                       nearest->id, nearest->abbr, all);
    }
    return gd_fail(err, GD_ENOTFOUND, "there is no condition \"%.60s\"; there are %s", name, all);
}

int gd_condition_find(const char *name, const struct gd_condition **ret, struct gd_err *err)
{
    const struct gd_condition *found = NULL;
    char all[256] = "";
    size_t count = 0;

    for (size_t i = 0; i < gd_condition_total; i++) {
        const struct gd_condition *condition = &gd_condition_table[i];
        if (strcasecmp(condition->id, name) == 0 || strcasecmp(condition->abbr, name) == 0) {
            *ret = condition;
            return GD_OK;
        }
        if (!*name || strncasecmp(condition->id, name, strlen(name)) != 0) {
            continue;
        }
        found = condition;
        add_name(all, sizeof(all), condition->id);
        count++;
    }
    if (count > 1) {
        return gd_fail(err, GD_EAMBIGUOUS, "\"%.60s\" could be %s", name, all);
    }
    if (!found) {
        return no_condition(name, err);
    }
    *ret = found;
    return GD_OK;
}

const struct gd_condition_param *gd_condition_param(const struct gd_condition *condition,
                                                    const char *name)
{
    for (int i = 0; i < condition->param_count; i++) {
        if (condition->param[i].name == name || strcmp(condition->param[i].name, name) == 0) {
            return &condition->param[i];
        }
    }
    return NULL;
}

const char *gd_condition_selector(const struct gd_condition *condition)
{
    static const char *const selectors[] = {
        [GD_COND_WEIGHT] = "weights", [GD_COND_GRADIENT] = "gradients",
        [GD_COND_TENSOR] = "all",     [GD_COND_ACTIVATION] = "activations",
        [GD_COND_SCALAR] = "loss",
    };
    return selectors[condition->target];
}

/* ---- checking ------------------------------------------------------------------------------ */

const char *gd_param_range_text(enum gd_param_range range)
{
    switch (range) {
    case GD_RANGE_ANY: return "any number";
    case GD_RANGE_NOT_NEGATIVE: return "0 or more";
    case GD_RANGE_POSITIVE: return "above 0";
    case GD_RANGE_PERCENT: return "0 to 100";
    case GD_RANGE_STEPS: return "a whole number, 1 or more";
    }
    return "";
}

static int check_range(const struct gd_condition_param *param, double value, struct gd_err *err)
{
    if (!isfinite(value)) {
        return gd_fail(err, GD_EINVAL, "%s must be a finite number", param->name);
    }
    if (param->range == GD_RANGE_NOT_NEGATIVE && value < 0) {
        return gd_fail(err, GD_EINVAL, "%s must not be negative", param->name);
    }
    if (param->range == GD_RANGE_POSITIVE && value <= 0) {
        return gd_fail(err, GD_EINVAL, "%s must be above 0", param->name);
    }
    if (param->range == GD_RANGE_PERCENT && (value < 0 || value > 100)) {
        return gd_fail(err, GD_EINVAL, "%s is a percentage: 0 to 100", param->name);
    }
    if (param->range == GD_RANGE_STEPS &&
        (value < 1 || value > STEPS_MAX || value != floor(value))) {
        return gd_fail(err, GD_EINVAL, "%s is a number of steps: a whole number from 1 to %d",
                       param->name, STEPS_MAX);
    }
    return GD_OK;
}

static int unknown_param(const struct gd_condition *condition, const char *name, struct gd_err *err)
{
    const char *nearest = NULL;
    char all[256] = "";

    for (int i = 0; i < condition->param_count; i++) {
        if (condition->param[i].hidden) {
            continue;
        }
        add_name(all, sizeof(all), condition->param[i].name);
        if (!nearest && gd_similar_meant(name, condition->param[i].name)) {
            nearest = condition->param[i].name;
        }
    }
    if (!condition->param_count) {
        return gd_fail(err, GD_EINVAL, "%s takes no parameters", condition->id);
    }
    if (nearest) {
        return gd_fail(err, GD_EINVAL, "%s has no parameter \"%.60s\"; did you mean %s?",
                       condition->id, name, nearest);
    }
    return gd_fail(err, GD_EINVAL, "%s has no parameter \"%.60s\"; it has %s", condition->id, name,
                   all);
}

static int check_one(const struct gd_condition *condition, const struct gd_condition_value *value,
                     struct gd_err *err)
{
    const struct gd_condition_param *param = gd_condition_param(condition, value->name);
    if (!param || param->hidden) {
        return unknown_param(condition, value->name, err);
    }
    if (param->type != value->type) {
        return gd_fail(err, GD_EINVAL, "%s must be %s", param->name,
                       param->type == GD_PARAM_BOOL ? "true or false" : "a number");
    }
    return check_range(param, value->value, err);
}

static const struct gd_condition_value *given_value(const struct gd_condition_value *values,
                                                    size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(values[i].name, name) == 0) {
            return &values[i];
        }
    }
    return NULL;
}

/* The range of TR and AR; other supporting parameters have defaults and go with any test. */
static int check_support(const struct gd_condition_param *test,
                         const struct gd_condition_value *values, size_t count, struct gd_err *err)
{
    const struct gd_condition_value *start = given_value(values, count, "range_start_inclusive");
    const struct gd_condition_value *end = given_value(values, count, "range_end_inclusive");
    if (test && test->needs_range && (!start || !end)) {
        return gd_fail(err, GD_EINVAL,
                       "%s needs range_start_inclusive and range_end_inclusive with it",
                       test->name);
    }
    if ((start || end) && !(test && test->needs_range)) {
        return gd_fail(err, GD_EINVAL, "%s is only for range_percentage_lt and range_percentage_gt",
                       start ? start->name : end->name);
    }
    if (start && end && start->value > end->value) {
        return gd_fail(err, GD_EINVAL, "range_start_inclusive is above range_end_inclusive");
    }
    return GD_OK;
}

int gd_condition_check(const struct gd_condition *condition,
                       const struct gd_condition_value *values, size_t count, struct gd_err *err)
{
    const struct gd_condition_param *test = NULL;
    for (size_t i = 0; i < count; i++) {
        int rc = check_one(condition, &values[i], err);
        if (rc != GD_OK) {
            return rc;
        }
        if (given_value(values, i, values[i].name)) {
            return gd_fail(err, GD_EINVAL, "%s is given twice", values[i].name);
        }
        const struct gd_condition_param *param = gd_condition_param(condition, values[i].name);
        if (param->support) {
            continue;
        }
        if (test && !condition->any_tests) {
            return gd_fail(err, GD_EINVAL, "one watchpoint cannot test both %s and %s: set two",
                           test->name, param->name);
        }
        test = param;
    }
    return check_support(test, values, count, err);
}

static bool is_test(const struct gd_condition_param *param)
{
    return !param->hidden && !param->support;
}

static int no_default(const struct gd_condition *condition, struct gd_err *err)
{
    char names[256] = "";

    for (int i = 0; i < condition->param_count; i++) {
        if (is_test(&condition->param[i])) {
            add_name(names, sizeof(names), condition->param[i].name);
        }
    }
    return gd_fail(err, GD_EINVAL, "%s needs one of %s", condition->id, names);
}

int gd_condition_complete(const struct gd_condition *condition,
                          const struct gd_condition_value *values, size_t count,
                          struct gd_condition_value ret[GD_MAX_CONDITION_PARAMS],
                          struct gd_err *err)
{
    bool tested = false, has_tests = false;
    int used = 0;

    for (size_t i = 0; i < count && used < GD_MAX_CONDITION_PARAMS; i++) {
        const struct gd_condition_param *param = gd_condition_param(condition, values[i].name);
        if (!param) {
            continue;
        }
        tested |= is_test(param);
        ret[used++] = (struct gd_condition_value){param->name, param->type, values[i].value};
    }
    bool wanted = !tested;
    for (int i = 0; i < condition->param_count && wanted; i++) {
        const struct gd_condition_param *param = &condition->param[i];
        has_tests |= is_test(param);
        if (!is_test(param) || !param->has_default || used == GD_MAX_CONDITION_PARAMS) {
            continue;
        }
        ret[used++] = (struct gd_condition_value){param->name, param->type, param->value};
        tested = true;
        wanted = condition->any_tests;
    }
    return has_tests && !tested ? no_default(condition, err) : used;
}

int gd_condition_available(const struct gd_condition *condition, bool ascend,
                           bool before_first_step, struct gd_err *err)
{
    if (condition->ascend_only && !ascend) {
        return gd_fail(err, GD_EUNSUPPORTED, "%s needs an Ascend device", condition->id);
    }
    if (condition->initial_only && !before_first_step) {
        return gd_fail(err, GD_ESTATE,
                       "%s can be checked only before the first step, which is already over",
                       condition->id);
    }
    return GD_OK;
}

/* ---- the wire ------------------------------------------------------------------------------ */

size_t gd_condition_encode(const struct gd_condition *condition,
                           const struct gd_condition_value *values, size_t count,
                           struct gd_remote_param ret[GD_MAX_CONDITION_PARAMS])
{
    for (int i = 0; i < condition->param_count; i++) {
        const struct gd_condition_param *param = &condition->param[i];
        const struct gd_condition_value *value = given_value(values, count, param->name);
        bool enabled = value || param->hidden;
        ret[i] = (struct gd_remote_param){.name = param->name, .disabled = !enabled};
        if (enabled) {
            ret[i].value = value ? value->value : param->value;
        }
    }
    return (size_t)condition->param_count;
}
