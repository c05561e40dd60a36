// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: edit */
#include <string.h>

#include "repl/core/watch_args.h"
#include "repl/values/watch.h"

struct values {
    struct gd_condition_value value[GD_MAX_CONDITION_PARAMS];
    size_t count;
};

static size_t index_of(const struct values *values, const char *name)
{
    size_t i = 0;
    while (i < values->count && strcmp(values->value[i].name, name) != 0) {
        i++;
    }
    return i;
}

static void drop_value(struct values *values, size_t index)
{
    if (index < values->count) {
        values->count--;
        memmove(&values->value[index], &values->value[index + 1],
                (values->count - index) * sizeof(values->value[0]));
    }
}

/* A watchpoint with a single test: a new test replaces it. */
static void drop_other_tests(struct values *values, const struct gd_condition *condition,
                             const struct watch_args *args)
{
    for (size_t i = values->count; i-- > 0;) {
        const struct gd_condition_param *param =
            gd_condition_param(condition, values->value[i].name);
        bool given = false;
        for (size_t k = 0; k < args->value_count; k++) {
            given = given || strcmp(args->values[k].name, values->value[i].name) == 0;
        }
        if (!given && param && !param->support) {
            drop_value(values, i);
        }
    }
}

/* Drops the parameters of a range that no test uses any more. */
static void drop_lonely_support(struct values *values, const struct gd_condition *condition,
                                const struct watch_args *args)
{
    bool wanted = false;
    for (size_t i = 0; i < values->count; i++) {
        const struct gd_condition_param *param =
            gd_condition_param(condition, values->value[i].name);
        wanted = wanted || (param && param->needs_range);
    }
    for (size_t k = 0; k < args->value_count; k++) { /* never drop silently what was typed */
        const struct gd_condition_param *param =
            gd_condition_param(condition, args->values[k].name);
        wanted = wanted || (param && param->support);
    }
    for (size_t i = values->count; !wanted && i-- > 0;) {
        const struct gd_condition_param *param =
            gd_condition_param(condition, values->value[i].name);
        if (param && param->support) {
            drop_value(values, i);
        }
    }
}

/* The parameters of the watchpoint, with those that were typed added or removed. */
static int merge_values(const struct gd_watchpoint *watch, const struct watch_args *args,
                        struct values *ret, struct gd_err *err)
{
    bool new_test = false;
    ret->count = watch->value_count;
    memcpy(ret->value, watch->values, sizeof(watch->values));
    for (size_t k = 0; k < args->value_count; k++) {
        const struct gd_condition_param *param =
            gd_condition_param(watch->condition, args->values[k].name);
        bool off = (args->off >> k & 1) != 0;
        new_test = new_test || (!off && param && !param->support);
        size_t at = index_of(ret, args->values[k].name);
        if (off) {
            drop_value(ret, at);
        } else if (at < GD_MAX_CONDITION_PARAMS) {
            ret->value[at] = args->values[k];
            ret->count += at == ret->count ? 1 : 0;
        } else {
            return gd_fail(err, GD_EINVAL, "too many parameters");
        }
    }
    if (new_test && !watch->condition->any_tests) {
        drop_other_tests(ret, watch->condition, args);
    }
    drop_lonely_support(ret, watch->condition, args);
    return GD_OK;
}

static int edit_parts(struct command_call *call, struct gd_watchpoint *watch, const char *text,
                      struct gd_err *err)
{
    struct watch_args args;
    struct values values;
    size_t column = call->line_at + (size_t)(text - call->line);
    int number = watch->number;
    int rc = watch_args_parse_edit(call->arena, text, column, watch->condition, &args, err);
    if (rc == GD_OK && args.has_head && watch->condition) {
        rc = merge_values(watch, &args, &values, err);
        rc = rc == GD_OK
                 ? gd_watchpoint_set_values(call->debugger, number, values.value, values.count, err)
                 : rc;
    } else if (rc == GD_OK && args.has_head) {
        rc = gd_watchpoint_set_expression(call->debugger, number, args.expression, err);
    }
    if (rc == GD_OK && args.where) {
        rc = gd_watchpoint_set_where(call->debugger, number, '=', args.where, err);
    }
    if (rc == GD_OK && args.guard) {
        rc = gd_watchpoint_set_guard(call->debugger, number, args.guard, err);
    }
    return rc;
}

/* '+' for "add SELECTOR", '-' for "remove SELECTOR", '\0' for anything else. */
static char node_change(const char *text, const char **where)
{
    const char *added = arg_after(text, "add"), *removed = arg_after(text, "remove");
    *where = added ? added : removed;
    if (!*where || (*where)[0] == '\0') {
        return '\0';
    }
    return added ? '+' : '-';
}

static int run_edit(struct command_call *call, struct gd_err *err)
{
    const char *rest;
    const char *where = NULL;
    const char *word = watch_first_word(call, &rest);
    struct gd_watchpoint *watch = NULL;
    if (word[0] == '\0') {
        return gd_fail(err, GD_EUSAGE, "edit: specify a watchpoint number");
    }
    int rc = watch_find(call, word, &watch, err);
    if (rc != GD_OK) {
        return rc;
    }
    char how = node_change(rest, &where);
    if (how != '\0') {
        where = where[0] == '\'' ? watch_args_unquote(call->arena, where) : where;
        rc = where ? gd_watchpoint_set_where(call->debugger, watch->number, how, where, err)
                   : gd_fail_nomem(err);
    } else {
        rc = edit_parts(call, watch, rest, err);
    }
    if (rc == GD_OK) {
        watch_show(call, watch);
    }
    return rc;
}

const struct command cmd_edit = {
    .name = "edit",
    .group = "breakpoints",
    .usage = "edit N [PARAM=VALUE... | EXPR] [on SELECTOR] [if EXPR] | edit N add | remove "
             "SELECTOR",
    .summary = "Change a watchpoint's parameters, expression or nodes",
    .help = "Parameters that are not named keep their values; PARAM=off removes one. If the\n"
            "condition takes a single test, a new one replaces it. \"on\" replaces the selector,\n"
            "\"add\" and \"remove\" extend and narrow it. Hit counts are kept.",
    .examples = "edit 2 abs_mean_gt=500\n"
                "edit 2 on weights except *bias\n"
                "edit 2 add type:softmax\n"
                "edit 2 remove model/block0",
    .args = {ARG_WATCHPOINT, ARG_WATCH_EDIT},
    .flags = CMD_RAW | CMD_CHANGES | CMD_METRICS,
    .run = run_edit,
};
