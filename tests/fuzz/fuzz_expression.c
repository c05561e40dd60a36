// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Expressions. What is refused must say where; what is accepted must mean the same when its text is
 * parsed again, evaluate on every kind of observation, and, when it is a simple one, hold exactly
 * when one of its comparisons does.
 */
#include "fuzz.h"

#include "engine/watch/expression.h"

#include <math.h>

static bool find_scalar(void *ctx, const char *name, double *ret)
{
    *ret = 2.5;
    return strcmp(name, "loss") == 0;
}

static enum gd_truth check_truth(const struct gd_expr *expr, const struct gd_observation *seen)
{
    unsigned error = 0;
    enum gd_truth truth = gd_expr_evaluate(expr, seen, &error);

    FUZZ_CHECK((truth == GD_UNKNOWN) == (error != 0));
    return truth;
}

static void check_simple(const struct gd_expr *expr, const struct gd_observation *seen)
{
    struct gd_comparison_of test[16];
    size_t count = gd_expr_simple(expr, test, 16);
    bool any = false, unknown = false;

    for (size_t i = 0; i < count; i++) {
        unsigned error;
        double actual;
        if (!gd_statistic_value(test[i].statistic, seen, &actual, &error)) {
            unknown = true;
        } else {
            any |= gd_compare(actual, test[i].op, test[i].value);
        }
    }
    if (count) {
        FUZZ_CHECK(check_truth(expr, seen) == (any ? GD_TRUE : unknown ? GD_UNKNOWN : GD_FALSE));
    }
}

static void check_all(const struct gd_expr *expr, const struct gd_expr *again)
{
    const struct gd_stats stats[] = {
        {.count = 4,
         .min = -1,
         .max = 3,
         .mean = 1,
         .abs_mean = 1.5,
         .sum_sq = 11,
         .std = 1.6,
         .has_prev = true,
         .mean_abs_delta = 0.5,
         .mean_abs_prev = 1,
         .mismatch = 2},
        {.count = 4, .nan = 1, .pos_inf = 1, .max = 3},
        {.count = 0, .min = INFINITY, .max = -INFINITY},
    };
    const struct gd_series series = {.seen = 20, .abs_mean = 1, .norm = 2, .mean = 1};

    for (size_t i = 0; i < 4; i++) {
        const struct gd_observation seen = {.stats = i < 3 ? &stats[i] : NULL,
                                            .range = -1,
                                            .step = 9,
                                            .value_step = 8,
                                            .series = i ? NULL : &series,
                                            .scalar = find_scalar};
        FUZZ_CHECK(check_truth(expr, &seen) == check_truth(again, &seen));
        check_simple(expr, &seen);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_expr *expr = NULL, *again = NULL;
    enum gd_statistic figure[GD_STAT_TOTAL];
    struct gd_err err = {0};
    char *text = fuzz_text(data, size);

    if (gd_expr_parse(text, &expr, &err) != GD_OK) {
        FUZZ_CHECK(err.offset <= strlen(text) && err.text[0] != '\0');
    } else {
        FUZZ_CHECK(gd_expr_parse(gd_expr_text(expr), &again, NULL) == GD_OK);
        FUZZ_CHECK(strcmp(gd_expr_text(expr), gd_expr_text(again)) == 0);
        FUZZ_CHECK(gd_expr_needs(expr) == gd_expr_needs(again));
        FUZZ_CHECK(gd_expr_figures(expr, figure, GD_STAT_TOTAL) < GD_STAT_TOTAL);
        check_all(expr, again);
        gd_expr_destroy(expr);
        gd_expr_destroy(again);
    }
    free(text);
    return 0;
}
