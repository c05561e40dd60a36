// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The judge of conditions behind lines of text, for tests that know from numpy what must come out.
 * One command a line on the standard input, fields separated by single blanks. What is set stays
 * set until it is set again. Only judge, expr and command errors answer: with one line each.
 *
 *     cur DTYPE DIMS DATA     the tensor; DIMS 2,3 or - for a scalar; DATA hexadecimal, @FILE or -
 *     prev DTYPE DIMS DATA    that of the step before; "prev" alone: none
 *     absent ERROR            no tensor, for that reason (a number)
 *     at STEP VALUE_STEP      when it is judged, and which step computed it
 *     look                    counts the dead units of the tensor once more
 *     past [STEP]             the tensor joins the past of its kind; "past" alone: no past
 *     scalar VALUE            the number of the training called "loss"
 *     judge CONDITION [PARAM=VALUE]...
 *     expr TEXT
 *
 * The answer: hit | none | unchecked, the error bits, then NAME=SET:ACTUAL:{hit|no|off} for each
 * parameter, floating point numbers in C's %a; or "error" and the sentence.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tool_words.h"
#include "base/units.h"
#include "engine/watch/condition.h"

static struct {
    struct gd_tensor *cur, *prev;
    unsigned error;
    int64_t step, value_step;
    struct gd_units *units;
    struct gd_series series;
    bool has_series;
    double scalar;
    bool has_scalar;
    /* the last statistics, and what they were computed with */
    struct gd_stats stats;
    struct gd_stats_options options;
    bool computed;
} now = {.value_step = -1};

static bool read_bytes(const char *path, unsigned char *bytes, size_t size)
{
    FILE *file = fopen(path, "rb");
    bool whole = file && fread(bytes, 1, size, file) == size;

    if (file) {
        fclose(file);
    }
    return whole;
}

static bool parse_data(const char *text, unsigned char *bytes, size_t size)
{
    if (text[0] == '@') {
        return read_bytes(text + 1, bytes, size);
    }
    if (strcmp(text, "-") == 0) {
        return size == 0;
    }
    if (strlen(text) != 2 * size) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};
        bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return true;
}

static int set_tensor(char *line, struct gd_tensor **ret, struct gd_err *err)
{
    const char *dtype = next_word(&line), *dims = next_word(&line);
    struct gd_tensor *tensor;
    struct gd_shape shape;

    gd_tensor_unref(*ret);
    *ret = NULL;
    now.computed = false;
    if (!dtype) {
        return GD_OK;
    }
    if (!dims || !line || !parse_dims(dims, &shape)) {
        return gd_fail(err, GD_EINVAL, "fields are missing");
    }
    int rc = gd_tensor_create(gd_dtype_from_name(dtype), &shape, 0, &tensor, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!parse_data(line, gd_tensor_bytes_mut(tensor), gd_tensor_bytes(tensor))) {
        gd_tensor_unref(tensor);
        return gd_fail(err, GD_EINVAL, "the data do not fit the shape");
    }
    *ret = tensor;
    return GD_OK;
}

static int do_cur(char *line, struct gd_err *err)
{
    now.error = 0;
    return set_tensor(line, &now.cur, err);
}

static int do_prev(char *line, struct gd_err *err)
{
    return set_tensor(line, &now.prev, err);
}

static int do_absent(char *line, struct gd_err *err)
{
    now.error = (unsigned)strtoul(line, NULL, 10);
    return set_tensor(NULL, &now.cur, err);
}

static int do_at(char *line, struct gd_err *err)
{
    now.step = strtoll(next_word(&line), NULL, 10);
    now.value_step = strtoll(next_word(&line), NULL, 10);
    return GD_OK;
}

static int do_look(char *line, struct gd_err *err)
{
    if (line) {
        gd_units_destroy(now.units);
        now.units = NULL;
        return GD_OK;
    }
    int rc = now.units ? GD_OK : gd_units_create(&now.units, err);

    return rc != GD_OK ? rc : gd_units_look(now.units, now.cur, err);
}

static int do_past(char *line, struct gd_err *err)
{
    struct gd_stats stats;

    if (!line) {
        now.series = (struct gd_series){0};
        now.has_series = false;
        return GD_OK;
    }
    int rc = gd_stats_compute(now.cur, NULL, NULL, &stats, err);
    if (rc == GD_OK) {
        gd_series_add(&now.series, &stats, strtoll(line, NULL, 10));
    }
    now.has_series = true;
    return rc;
}

static int do_scalar(char *line, struct gd_err *err)
{
    now.has_scalar = line != NULL;
    now.scalar = line ? strtod(line, NULL) : 0;
    return GD_OK;
}

static bool find_scalar(void *ctx, const char *name, double *ret)
{
    if (!now.has_scalar || strcmp(name, "loss") != 0) {
        return false;
    }
    *ret = now.scalar;
    return true;
}

/* As a target does: statistics with what the condition wants, against the value before when it is
 * of the same kind. */
static bool compute_stats(const struct gd_stats_options *options)
{
    bool alike = now.cur && now.prev && now.cur->dtype == now.prev->dtype &&
                 gd_shape_equal(&now.cur->shape, &now.prev->shape);

    if (now.computed && memcmp(options, &now.options, sizeof(*options)) == 0) {
        return true;
    }
    now.options = *options;
    now.computed = now.cur && gd_stats_compute(now.cur, alike ? now.prev : NULL, options,
                                               &now.stats, NULL) == GD_OK;
    return now.computed;
}

static void make_observation(const struct gd_condition_want *want, struct gd_observation *ret)
{
    struct gd_stats_options options;

    memset(&options, 0, sizeof(options)); /* compared as bytes */
    options.rtol = want->rtol;
    options.atol = want->atol;
    options.equal_nan = want->equal_nan;
    *ret = (struct gd_observation){.error = now.error,
                                   .dtype = now.cur ? now.cur->dtype : GD_DT_NONE,
                                   .range = -1,
                                   .step = now.step,
                                   .value_step = now.value_step,
                                   .series = now.has_series ? &now.series : NULL,
                                   .scalar = find_scalar};
    if (want->needs & GD_NEED_RANGE) {
        options.range_count = 1;
        options.range[0] = want->range;
        ret->range = 0;
    }
    if (!compute_stats(&options)) {
        return;
    }
    now.stats.units = now.stats.dead_units = 0;
    if (now.units) {
        gd_units_count(now.units, want->dead_steps, &now.stats.units, &now.stats.dead_units);
    }
    ret->stats = &now.stats;
}

static void print_verdict(const struct gd_verdict *verdict)
{
    static const char *const outcomes[] = {
        [GD_NO_HIT] = "none", [GD_IS_HIT] = "hit", [GD_NOT_CHECKED] = "unchecked"};

    printf("%s %u", outcomes[verdict->outcome], verdict->error);
    for (int i = 0; i < verdict->param_count; i++) {
        const struct gd_hit_param *param = &verdict->param[i];
        printf(" %s=%a:%a:%s", param->name, param->set_value, param->actual_value,
               param->disabled ? "off"
               : param->hit    ? "hit"
                               : "no");
    }
    printf("\n");
}

static int do_judge(char *line, struct gd_err *err)
{
    struct gd_condition_value values[GD_MAX_CONDITION_PARAMS];
    const struct gd_condition *condition;
    struct gd_condition_want want;
    struct gd_observation seen;
    struct gd_verdict verdict;
    size_t count = 0;
    int rc = gd_condition_find(next_word(&line), &condition, err);

    if (rc != GD_OK) {
        return rc;
    }
    for (char *field; count < GD_MAX_CONDITION_PARAMS && (field = next_word(&line)); count++) {
        char *equals = strchr(field, '=');
        if (!equals) {
            return gd_fail(err, GD_EINVAL, "no = in %s", field);
        }
        *equals = '\0';
        values[count] =
            (struct gd_condition_value){field, GD_PARAM_FLOAT, strtod(equals + 1, NULL)};
    }
    rc = gd_condition_check(condition, values, count, err);
    if (rc != GD_OK) {
        return rc;
    }
    gd_condition_want(condition, values, count, &want);
    make_observation(&want, &seen);
    gd_condition_judge(condition, values, count, &seen, &verdict);
    print_verdict(&verdict);
    return GD_OK;
}

static int do_expr(char *line, struct gd_err *err)
{
    struct gd_condition_want want;
    struct gd_observation seen;
    struct gd_verdict verdict;
    struct gd_expr *expr;
    int rc = gd_expr_parse(line, &expr, err);

    if (rc != GD_OK) {
        return rc;
    }
    gd_condition_want_expr(expr, &want);
    make_observation(&want, &seen);
    gd_condition_judge_expr(expr, &seen, &verdict);
    print_verdict(&verdict);
    gd_expr_destroy(expr);
    return GD_OK;
}

static int do_table(char *line, struct gd_err *err)
{
    const struct gd_condition *condition;

    for (size_t i = 0; (condition = gd_condition_at(i)); i++) {
        printf("condition %s %s %s", condition->id, condition->abbr,
               gd_condition_selector(condition));
        for (int p = 0; p < condition->param_count; p++) {
            const struct gd_condition_param *param = &condition->param[p];
            if (!param->hidden && param->has_default) {
                printf(" %s=%g", param->name, param->value);
            } else if (!param->hidden) {
                printf(" %s", param->name);
            }
        }
        printf("\n");
    }
    for (int i = GD_STAT_NONE + 1; i < GD_STAT_TOTAL; i++) {
        printf("figure %s\n", gd_statistic_name((enum gd_statistic)i));
    }
    return GD_OK;
}

static const struct tool_command commands[] = {
    {"cur", do_cur},   {"prev", do_prev},   {"absent", do_absent}, {"at", do_at},
    {"look", do_look}, {"past", do_past},   {"scalar", do_scalar}, {"judge", do_judge},
    {"expr", do_expr}, {"table", do_table},
};

int main(void)
{
    char *line = NULL;
    size_t cap = 0;

    while (read_line(&line, &cap)) {
        struct gd_err err;

        if (run_command(commands, sizeof(commands) / sizeof(commands[0]), line, &err) != GD_OK) {
            printf("error %s\n", err.text);
        }
    }
    free(line);
    gd_tensor_unref(now.cur);
    gd_tensor_unref(now.prev);
    gd_units_destroy(now.units);
    return 0;
}
