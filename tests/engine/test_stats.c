// SPDX-License-Identifier: GPL-3.0-or-later
/* What the comparison with numpy (test_stats_numpy.py) cannot: errors, and 1e8 elements. */
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "engine/stats.h"

/* Sanitizers slow the loops down tenfold, and what is counted here does not need them. */
#if defined(__SANITIZE_ADDRESS__)
#define MANY_ROWS 5000
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MANY_ROWS 5000
#endif
#endif
#ifndef MANY_ROWS
#define MANY_ROWS 50000
#endif

static struct gd_tensor *make(enum gd_dtype dtype, const void *values, int64_t count)
{
    const struct gd_shape shape = {.rank = 1, .dim = {count}};
    struct gd_tensor *tensor;

    assert_int_equal(gd_tensor_wrap(dtype, &shape, values, (size_t)count * gd_dtype_size(dtype),
                                    NULL, NULL, &tensor, NULL),
                     GD_OK);
    return tensor;
}

static void small_by_hand(void **state)
{
    const float values[] = {1, -3, 0, -0.0f, NAN, INFINITY, -INFINITY, FLT_MIN / 2};
    const struct gd_stats_options options = {.range_count = 1, .range = {{-3, 0}}};
    struct gd_tensor *tensor = make(GD_FLOAT32, values, 8);
    struct gd_stats s;

    (void)state;
    assert_int_equal(gd_stats_compute(tensor, NULL, &options, &s, NULL), GD_OK);
    assert_int_equal(s.count, 8);
    assert_int_equal(s.nan, 1);
    assert_int_equal(s.pos_inf, 1);
    assert_int_equal(s.neg_inf, 1);
    assert_int_equal(s.zero, 2);
    assert_int_equal(s.neg_zero, 1);
    assert_int_equal(s.positive, 2);
    assert_int_equal(s.negative, 1);
    assert_int_equal(s.denormal, 1);
    assert_int_equal(s.in_range[0], 3);
    assert_true(s.min == -3 && s.max == 1 && !s.has_prev);
    assert_true(fabs(s.mean + 0.4) < 1e-15 && fabs(s.abs_mean - 0.8) < 1e-15 && s.sum_sq == 10);
    assert_true(fabs(s.std - sqrt(10 / 5.0 - 0.16)) < 1e-15);
    gd_tensor_unref(tensor);
}

static void against_the_step_before(void **state)
{
    const float cur[] = {1, 2, NAN, INFINITY, INFINITY, 4, 0};
    const float old[] = {1, 2.5f, NAN, INFINITY, -INFINITY, 4.0001f, 1e-9f};
    const struct gd_stats_options options = {.rtol = 1e-3, .atol = 1e-8};
    struct gd_tensor *a = make(GD_FLOAT32, cur, 7), *b = make(GD_FLOAT32, old, 7);
    struct gd_stats s;

    (void)state;
    assert_int_equal(gd_stats_compute(a, b, &options, &s, NULL), GD_OK);
    assert_true(s.has_prev);
    assert_int_equal(s.mismatch, 3); /* 2, NaN, and the infinities of two signs */
    assert_true(s.max_abs_delta == 0.5);
    assert_true(fabs(s.mean_abs_delta - 0.5001 / 4) < 1e-5);
    assert_true(fabs(s.dot - (1 + 5 + 16.0004)) < 1e-5);
    gd_tensor_unref(a);
    gd_tensor_unref(b);
}

static void what_cannot_be_compared(void **state)
{
    const int32_t values[] = {1, 2, 3, 4};
    struct gd_tensor *four = make(GD_INT32, values, 4), *three = make(GD_INT32, values, 3),
                     *other = make(GD_FLOAT32, values, 4);
    struct gd_stats s = {.count = 77};
    struct gd_err err;

    (void)state;
    assert_int_equal(gd_stats_compute(four, three, NULL, &s, &err), GD_EINVAL);
    assert_string_equal(err.text, "cannot compare int32 (4,) with int32 (3,): type and shape must "
                                  "agree");
    assert_int_equal(gd_stats_compute(four, other, NULL, &s, &err), GD_EINVAL);
    assert_int_equal(s.count, 77);
    gd_tensor_unref(four);
    gd_tensor_unref(three);
    gd_tensor_unref(other);
}

/* A view that is one row many times over: the shape is huge, the memory small, the sums known. */
static void many_elements(void **state)
{
    enum { ROW = 2000 };
    const struct gd_shape shape = {.rank = 2, .dim = {MANY_ROWS, ROW}};
    const int64_t stride[GD_MAX_RANK] = {0, 4};
    const double a = (double)0.1f, b = (double)1000.3f, n = (double)MANY_ROWS * ROW;
    float values[ROW];
    struct gd_tensor *row, *tensor;
    struct gd_stats s;

    (void)state;
    for (int i = 0; i < ROW; i++)
        values[i] = i % 2 ? 0.1f : 1000.3f;
    row = make(GD_FLOAT32, values, ROW);
    assert_int_equal(gd_tensor_view(row, &shape, stride, 0, &tensor, NULL), GD_OK);
    assert_int_equal(gd_stats_compute(tensor, NULL, NULL, &s, NULL), GD_OK);
    gd_tensor_unref(tensor);
    gd_tensor_unref(row);
    assert_int_equal(s.count, MANY_ROWS * ROW);
    assert_true(fabs(s.mean / ((a + b) / 2) - 1) < 1e-12);
    assert_true(fabs(s.sum_sq / ((a * a + b * b) / 2 * n) - 1) < 1e-12);
    assert_true(fabs(s.std / ((b - a) / 2) - 1) < 1e-12);
}

/* As a trainer may have set its thread up: signals at NaN, denormals read as 0. */
static void the_trainers_environment_does_not_matter(void **state)
{
    const float values[] = {NAN, INFINITY, FLT_MIN / 2, FLT_MAX, 0};
    struct gd_tensor *tensor = make(GD_FLOAT32, values, 5);
    struct gd_stats s;
    uint64_t bins[2];

    (void)state;
#ifdef __SSE__
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
#endif
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_INVALID | FE_OVERFLOW | FE_DIVBYZERO);
    assert_int_equal(gd_stats_compute(tensor, tensor, NULL, &s, NULL), GD_OK);
    assert_int_equal(gd_stats_histogram(tensor, 0, (double)FLT_MAX, 2, bins, NULL), GD_OK);
    assert_int_equal(fegetexcept(), FE_INVALID | FE_OVERFLOW | FE_DIVBYZERO);
#ifdef __SSE__
    assert_int_equal(_mm_getcsr() & 0x8040, 0x8040);
#endif
    fesetenv(FE_DFL_ENV);
    assert_int_equal(s.nan, 1);
    assert_int_equal(s.pos_inf, 1);
    assert_int_equal(s.denormal, 1);
    assert_int_equal(s.zero, 1);
    assert_int_equal(s.mismatch, 1);
    assert_int_equal(bins[0], 2);
    assert_int_equal(bins[1], 1);
    gd_tensor_unref(tensor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_by_hand),
        cmocka_unit_test(against_the_step_before),
        cmocka_unit_test(what_cannot_be_compared),
        cmocka_unit_test(the_trainers_environment_does_not_matter),
        cmocka_unit_test(many_elements),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
