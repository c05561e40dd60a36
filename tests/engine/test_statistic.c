// SPDX-License-Identifier: GPL-3.0-or-later
#include <float.h>
#include <math.h>

#include "../unit.h"
#include "engine/session.h"
#include "engine/statistic.h"

/* A record in which every number is another. */
static const struct gd_stats record = {
    .count = 200,
    .zero = 30,
    .neg_zero = 4,
    .positive = 100,
    .negative = 70,
    .denormal = 5,
    .min = -9,
    .max = 6,
    .mean = 0.5,
    .abs_mean = 2,
    .sum_sq = 1600,
    .std = 3,
    .range_count = 2,
    .in_range = {150, 20},
    .has_prev = true,
    .mean_abs_delta = 0.25,
    .mean_delta = -0.125,
    .sum_sq_delta = 49,
    .max_abs_delta = 7.5,
    .mean_abs_prev = 4,
    .dot = -400,
    .sum_sq_prev = 2500,
    .mismatch = 11,
    .units = 40,
    .dead_units = 10,
};
static const struct gd_series past = {.seen = 10,
                                      .last_step = 99,
                                      .abs_mean = 1,
                                      .abs_mean_var = 0.0625,
                                      .norm = 16,
                                      .mean_var = 0.015625,
                                      .mean = 0.25,
                                      .best_mean = 0.2,
                                      .best_step = 60,
                                      .recent = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.75, 1},
                                      .height = 2};

static struct gd_observation make_observation(const struct gd_stats *stats)
{
    return (struct gd_observation){.stats = stats,
                                   .dtype = GD_FLOAT32,
                                   .range = 1,
                                   .step = 100,
                                   .value_step = 97,
                                   .series = &past};
}

static const struct {
    enum gd_statistic statistic;
    const char *name;
    double want;
    unsigned nan, inf, empty; /* what it lacks when there is one */
} figures[] = {
#define ALL     GD_HIT_NAN, GD_HIT_INF, GD_HIT_EMPTY
#define NAN_INF GD_HIT_NAN, GD_HIT_INF, 0
    {GD_STAT_COUNT, "count", 200, 0, 0, 0},
    {GD_STAT_NAN, "nan", 0, 0, 0, 0},
    {GD_STAT_INF, "inf", 0, 0, 0, 0},
    {GD_STAT_POS_INF, "pos_inf", 0, 0, 0, 0},
    {GD_STAT_NEG_INF, "neg_inf", 0, 0, 0, 0},
    {GD_STAT_NONFINITE, "nonfinite", 0, 0, 0, 0},
    {GD_STAT_ZERO, "zero", 30, 0, 0, 0},
    {GD_STAT_NEG_ZERO, "neg_zero", 4, 0, 0, 0},
    {GD_STAT_POSITIVE, "positive", 100, 0, 0, 0},
    {GD_STAT_NEGATIVE, "negative", 70, 0, 0, 0},
    {GD_STAT_DENORMAL, "denormal", 5, 0, 0, 0},
    {GD_STAT_MIN, "min", -9, ALL},
    {GD_STAT_MAX, "max", 6, ALL},
    {GD_STAT_SPREAD, "spread", 15, ALL},
    {GD_STAT_MAX_ABS, "max_abs", 9, ALL},
    {GD_STAT_MEAN, "mean", 0.5, ALL},
    {GD_STAT_ABS_MEAN, "abs_mean", 2, ALL},
    {GD_STAT_STD, "std", 3, ALL},
    {GD_STAT_SUM_SQ, "sum_sq", 1600, ALL},
    {GD_STAT_NORM, "norm", 40, ALL},
    {GD_STAT_ZERO_PERCENTAGE, "zero_percentage", 15, NAN_INF},
    {GD_STAT_DENORMAL_PERCENTAGE, "denormal_percentage", 2.5, NAN_INF},
    {GD_STAT_RANGE_PERCENTAGE, "range_percentage", 10, NAN_INF},
    {GD_STAT_CLIP_PERCENTAGE, "clip_percentage", 90, GD_HIT_NAN, 0, 0},
    {GD_STAT_DEAD_PERCENTAGE, "dead_percentage", 25, 0, 0, 0},
    {GD_STAT_DELTA_ABS_MEAN, "abs_mean(cur-prev)", 0.25, ALL},
    {GD_STAT_DELTA_MAX_ABS, "max_abs(cur-prev)", 7.5, ALL},
    {GD_STAT_DELTA_MEAN, "mean(cur-prev)", -0.125, ALL},
    {GD_STAT_DELTA_NORM, "norm(cur-prev)", 7, ALL},
    {GD_STAT_PREV_ABS_MEAN, "abs_mean(prev)", 4, ALL},
    {GD_STAT_PREV_NORM, "norm(prev)", 50, ALL},
    {GD_STAT_UPDATE_RATIO, "update_ratio", 0.25 / (4 + 1e-9), ALL},
    {GD_STAT_COSINE, "cosine", -0.2, ALL},
    {GD_STAT_MISMATCH, "mismatch", 11, 0, 0, 0},
    {GD_STAT_UNPAIRED, "unpaired", 0, 0, 0, 0},
    {GD_STAT_Z_SCORE, "z_score", 4, ALL},
    {GD_STAT_NORM_RATIO, "norm_ratio", 2.5, ALL},
    {GD_STAT_MEAN_RATIO, "mean_ratio", 2, ALL},
    {GD_STAT_MEAN_Z_SCORE, "mean_z_score", 2, ALL},
    {GD_STAT_STALL, "stall", 40, ALL},
    {GD_STAT_RISE, "rise", 0.25, ALL},
    {GD_STAT_AGE, "age", 3, 0, 0, 0},
};
#define FIGURES (sizeof(figures) / sizeof(*figures))

static void test_values(void **state)
{
    struct gd_observation seen = make_observation(&record);
    assert_int_equal(FIGURES, GD_STAT_TOTAL - 1);
    for (size_t i = 0; i < FIGURES; i++) {
        double value = -77;
        unsigned error = 77;
        assert_true(gd_statistic_value(figures[i].statistic, &seen, &value, &error));
        assert_int_equal(error, 0);
        if (value != figures[i].want) {
            fail_msg("%s is %g", figures[i].name, value);
        }
    }
}

static void expect_error(enum gd_statistic statistic, const struct gd_observation *seen,
                         unsigned want)
{
    unsigned error = 77;
    double value = -77;
    bool known = gd_statistic_value(statistic, seen, &value, &error);
    if (known != (want == 0) || error != want) {
        fail_msg("%s: error %u, not %u", gd_statistic_name(statistic), error, want);
    }
    if (!known) {
        assert_true(value == -77);
    }
    assert_false(known && isnan(value));
}

static void test_what_blocks(void **state)
{
    struct gd_stats stats = record;
    struct gd_observation seen = make_observation(&stats);
    for (size_t i = 0; i < FIGURES; i++) {
        stats = record;
        stats.nan = 1;
        expect_error(figures[i].statistic, &seen, figures[i].nan);
        stats.neg_inf = 1;
        expect_error(figures[i].statistic, &seen, figures[i].nan | figures[i].inf);
        stats.nan = 0;
        expect_error(figures[i].statistic, &seen, figures[i].inf);
        stats.neg_inf = 0;
        stats.count = 0;
        expect_error(figures[i].statistic, &seen, figures[i].empty);
    }
}

/* What was NaN or Inf in the step before has no change, whatever it is now. */
static void test_previous_not_finite(void **state)
{
    struct gd_stats stats = record;
    struct gd_observation seen = make_observation(&stats);
    for (size_t i = 0; i < FIGURES; i++) {
        unsigned needs = gd_statistic_needs(figures[i].statistic);
        bool change = (needs & GD_NEED_PREVIOUS) && (needs & GD_NEED_FINITE);
        unsigned want = change ? GD_HIT_PREVIOUS_NOT_FINITE : 0;
        stats = record;
        stats.unpaired = 1;
        expect_error(figures[i].statistic, &seen, want);
        stats.nan = 1; /* the same element, or so it may be */
        expect_error(figures[i].statistic, &seen, figures[i].nan);
        stats.unpaired = 2;
        expect_error(figures[i].statistic, &seen, figures[i].nan | want);
        stats.has_prev = false;
        expect_error(figures[i].statistic, &seen,
                     figures[i].nan | (needs & GD_NEED_PREVIOUS ? GD_HIT_NO_PREVIOUS : 0));
    }
}

static void test_what_is_missing(void **state)
{
    for (size_t i = 0; i < FIGURES; i++) {
        struct gd_stats stats = record;
        struct gd_observation seen = make_observation(&stats);
        unsigned needs = gd_statistic_needs(figures[i].statistic);
        bool finite = figures[i].nan || figures[i].inf || figures[i].empty;
        assert_int_equal(!!(needs & GD_NEED_FINITE), finite);
        stats.has_prev = false;
        expect_error(figures[i].statistic, &seen,
                     needs & GD_NEED_PREVIOUS ? GD_HIT_NO_PREVIOUS : 0);
        seen.error = GD_HIT_NO_MEMORY; /* why there is none */
        expect_error(figures[i].statistic, &seen,
                     needs & GD_NEED_PREVIOUS ? GD_HIT_NO_PREVIOUS | GD_HIT_NO_MEMORY : 0);
        seen = make_observation(&stats);
        stats.has_prev = true;
        for (seen.range = -1; seen.range < 20; seen.range++) {
            expect_error(figures[i].statistic, &seen,
                         (needs & GD_NEED_RANGE) && (seen.range < 0 || seen.range > 1)
                             ? GD_HIT_NO_FIGURE
                             : 0);
        }
        seen.range = 1;
        seen.series = NULL;
        expect_error(figures[i].statistic, &seen, needs & GD_NEED_SERIES ? GD_HIT_NO_HISTORY : 0);
        struct gd_series young = past;
        young.seen = figures[i].statistic == GD_STAT_RISE ? 1 : GD_SERIES_WARMUP - 1;
        seen.series = &young;
        expect_error(figures[i].statistic, &seen, needs & GD_NEED_SERIES ? GD_HIT_NO_HISTORY : 0);
        seen.series = &past;
        stats.units = 0;
        expect_error(figures[i].statistic, &seen, needs & GD_NEED_UNITS ? GD_HIT_NO_HISTORY : 0);
    }
}

static void test_no_value(void **state)
{
    struct gd_observation seen = make_observation(NULL);
    assert_int_equal(gd_statistic_errors(&seen), GD_HIT_NO_VALUE);
    for (size_t i = 0; i < FIGURES; i++) {
        bool age = figures[i].statistic == GD_STAT_AGE;
        seen = make_observation(NULL);
        expect_error(figures[i].statistic, &seen, age ? 0 : GD_HIT_NO_VALUE);
        seen.error = GD_HIT_NOT_CAPTURED;
        expect_error(figures[i].statistic, &seen, age ? 0 : GD_HIT_NOT_CAPTURED);
        seen.value_step = -1;
        expect_error(figures[i].statistic, &seen, GD_HIT_NOT_CAPTURED);
        seen.error = 0;
        expect_error(figures[i].statistic, &seen, GD_HIT_NO_VALUE);
        seen.dtype = GD_STRING;
        if (!age) {
            expect_error(figures[i].statistic, &seen, GD_HIT_NOT_NUMBERS);
        }
    }
    expect_error(GD_STAT_NONE, &seen, GD_HIT_NO_FIGURE);
    expect_error(GD_STAT_TOTAL, &seen, GD_HIT_NO_FIGURE);
}

static void test_corners(void **state)
{
    struct gd_stats stats = record;
    struct gd_observation seen = make_observation(&stats);
    double value;
    unsigned error;
    stats.sum_sq_prev = 0;
    expect_error(GD_STAT_COSINE, &seen, GD_HIT_NO_FIGURE);
    stats.sum_sq_prev = 2500;
    stats.dot = 2000.0000001; /* rounding must not lead beyond 1 */
    assert_true(gd_statistic_value(GD_STAT_COSINE, &seen, &value, &error) && value == 1);
    stats.mean_abs_prev = 0;
    assert_true(gd_statistic_value(GD_STAT_UPDATE_RATIO, &seen, &value, &error));
    assert_true(value == 0.25 / 1e-9);
    stats.mean_abs_delta = stats.mean_abs_prev = INFINITY;
    expect_error(GD_STAT_UPDATE_RATIO, &seen, GD_HIT_NO_FIGURE);
    seen.value_step = -1;
    assert_true(gd_statistic_value(GD_STAT_AGE, &seen, &value, &error) && value == 0);
    seen.value_step = 105;
    assert_true(gd_statistic_value(GD_STAT_AGE, &seen, &value, &error) && value == 0);
}

static void test_names(void **state)
{
    for (size_t i = 0; i < FIGURES; i++) {
        char name[48];
        enum gd_statistic statistic = figures[i].statistic;
        assert_string_equal(gd_statistic_name(statistic), figures[i].name);
        assert_true(gd_statistic_text(statistic)[0] != '\0');
        assert_true(strlen(figures[i].name) < sizeof(name));
        memcpy(name, figures[i].name, strlen(figures[i].name) + 1);
        char *of = strchr(name, '(');
        if (of) {
            *of++ = '\0';
            of[strlen(of) - 1] = '\0';
        } else {
            assert_int_equal(gd_statistic_find(name, "cur"), statistic);
            assert_int_equal(gd_statistic_find(name, ""), statistic);
        }
        assert_int_equal(gd_statistic_find(name, of), statistic);
    }
    assert_int_equal(gd_statistic_find("max_min", NULL), GD_STAT_SPREAD);
    assert_int_equal(gd_statistic_find("abs_mean_update_ratio", NULL), GD_STAT_UPDATE_RATIO);
    assert_int_equal(gd_statistic_find("std", "prev"), GD_STAT_NONE);
    assert_int_equal(gd_statistic_find("max_min", "prev"), GD_STAT_NONE);
    assert_int_equal(gd_statistic_find("foo", NULL), GD_STAT_NONE);
    assert_int_equal(gd_statistic_find("", ""), GD_STAT_NONE);
    assert_string_equal(gd_statistic_name(GD_STAT_NONE), "");
    assert_string_equal(gd_statistic_text(GD_STAT_TOTAL), "");
    assert_int_equal(gd_statistic_needs(GD_STAT_TOTAL), 0);
}

static void add_mean(struct gd_series *series, double mean, int64_t step)
{
    const struct gd_stats stats = {
        .count = 1, .mean = mean, .abs_mean = fabs(mean), .sum_sq = mean * mean};
    gd_series_add(series, &stats, step);
}

/* A plain mean and variance of the first values; then the latest has 2/21. */
static void test_series(void **state)
{
    struct gd_series series = {0};
    for (int i = 1; i <= 10; i++) {
        add_mean(&series, i, i);
    }
    assert_int_equal(series.seen, 10);
    assert_true(fabs(series.abs_mean - 5.5) < 1e-12 && fabs(series.norm - 5.5) < 1e-12);
    assert_true(fabs(series.abs_mean_var - 8.25) < 1e-12);
    assert_true(fabs(series.mean_var - 8.25) < 1e-12);
    assert_true(series.best_mean == 1 && series.best_step == 1 && series.last_step == 10);
    add_mean(&series, 16, 11);
    assert_true(fabs(series.abs_mean - (5.5 + 10.5 * 2 / 21)) < 1e-12);
    assert_true(fabs(series.mean - 6.5) < 1e-12);
    add_mean(&series, 99, 11); /* the same step again */
    assert_true(series.seen == 11 && fabs(series.mean - 6.5) < 1e-12);
    add_mean(&series, 0.99995, 12); /* not lower by a ten-thousandth */
    assert_int_equal(series.best_step, 1);
    add_mean(&series, 0.9998, 13);
    assert_int_equal(series.best_step, 13);
}

static double rise_after(const struct gd_series *series, double mean)
{
    struct gd_stats stats = {.count = 1, .mean = mean};
    struct gd_observation seen = {.stats = &stats, .dtype = GD_FLOAT64, .series = series};
    double value = -1;
    unsigned error;
    return gd_statistic_value(GD_STAT_RISE, &seen, &value, &error) ? value : -1;
}

/* Against what was long ago, so that a loss that climbs for many steps does not hide itself. */
static void test_rise(void **state)
{
    struct gd_series series = {0}, sunk = {0};
    assert_true(rise_after(&series, 8) == -1);
    add_mean(&series, 4, 1);
    add_mean(&series, 40, 2);
    assert_true(rise_after(&series, 2) == 0.5);
    assert_true(rise_after(&series, 100) == 1); /* one value alone is no rise */
    add_mean(&series, 30, 3);
    assert_true(rise_after(&series, 50) == 7.5);
    for (int i = 4; i < 13; i++) {
        add_mean(&series, 50 + i, i);
    }
    assert_true(rise_after(&series, 90) == 61.0 / 40);
    add_mean(&sunk, -1, 1);
    add_mean(&sunk, 40, 2);
    add_mean(&sunk, 40, 3);
    assert_true(rise_after(&sunk, 40) == 0);
}

static double value_after(enum gd_statistic statistic, const struct gd_series *series, double mean)
{
    struct gd_stats stats = {.count = 1, .mean = mean};
    struct gd_observation seen = {.stats = &stats, .dtype = GD_FLOAT64, .series = series};
    double value = 0;
    unsigned error;
    assert_true(gd_statistic_value(statistic, &seen, &value, &error));
    return value;
}

/* A loss that has come down to nearly 0, with a hard batch now and then; the same that jumps. */
static void test_a_loss_that_has_come_down(void **state)
{
    struct gd_series smooth = {0}, jumps = {0};
    for (int i = 1; i <= 100; i++) {
        add_mean(&smooth, exp(-i / 5.0), i);
        add_mean(&jumps, i % 15 ? exp(-i / 5.0) : 0.02, i);
    }
    assert_true(value_after(GD_STAT_MEAN_RATIO, &smooth, 0.05) < 3);
    assert_true(value_after(GD_STAT_MEAN_Z_SCORE, &smooth, 0.05) < 6);
    assert_true(value_after(GD_STAT_MEAN_RATIO, &jumps, 0.02) < 3);
    assert_true(value_after(GD_STAT_MEAN_Z_SCORE, &jumps, 0.02) < 6);
    assert_true(value_after(GD_STAT_MEAN_RATIO, &smooth, 0.5) > 3);
    assert_true(value_after(GD_STAT_MEAN_Z_SCORE, &smooth, 0.5) > 6);
    for (int i = 101; i <= 1500; i++) {
        add_mean(&smooth, 1e-3 + 1e-5 * (i % 7), i);
    }
    assert_true(value_after(GD_STAT_MEAN_RATIO, &smooth, 0.05) > 3); /* where it was is long ago */
}

static void test_series_leaves_out(void **state)
{
    struct gd_series series = {0}, empty = {0};
    const struct gd_stats bad[] = {
        {.count = 0},
        {.count = 2, .nan = 1, .mean = 1, .abs_mean = 1, .sum_sq = 1},
        {.count = 2, .pos_inf = 1, .mean = 1, .abs_mean = 1, .sum_sq = 1},
        {.count = 2, .neg_inf = 1, .mean = 1, .abs_mean = 1, .sum_sq = 1},
        {.count = 2, .mean = 1, .abs_mean = 1, .sum_sq = INFINITY},
        {.count = 2, .mean = INFINITY, .abs_mean = INFINITY, .sum_sq = 1},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        gd_series_add(&series, &bad[i], (int64_t)i);
    }
    assert_memory_equal(&series, &empty, sizeof(series));
    for (int i = 0; i < 200; i++) { /* whatever comes, what is kept stays finite */
        double sizes[] = {1e-300, 1e150, 0, 1e-320, 1e153};
        add_mean(&series, sizes[i % 5], i);
        assert_true(isfinite(series.abs_mean) && isfinite(series.abs_mean_var) &&
                    isfinite(series.norm) && isfinite(series.mean) && isfinite(series.mean_var));
        assert_true(series.abs_mean_var >= 0 && series.mean_var >= 0);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_values),
    cmocka_unit_test(test_what_blocks),
    cmocka_unit_test(test_what_is_missing),
    cmocka_unit_test(test_previous_not_finite),
    cmocka_unit_test(test_no_value),
    cmocka_unit_test(test_corners),
    cmocka_unit_test(test_names),
    cmocka_unit_test(test_series),
    cmocka_unit_test(test_rise),
    cmocka_unit_test(test_a_loss_that_has_come_down),
    cmocka_unit_test(test_series_leaves_out),
};

RUN_TESTS()
