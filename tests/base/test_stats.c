// SPDX-License-Identifier: GPL-3.0-or-later
/* What test_stats_numpy.py does not cover: errors, and 1e8 elements. */
#include <fenv.h>
#include <float.h>
#include <math.h>

#include "../unit.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "base/stats.h"

/* Sanitizers slow these loops down tenfold; other tests cover the same code. */
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

static struct gd_tensor *make_tensor(enum gd_dtype dtype, const void *values, int64_t count)
{
    const struct gd_shape shape = {.rank = 1, .dim = {count}};
    struct gd_tensor *tensor;

    assert_ok(gd_tensor_wrap(dtype, &shape, values, (size_t)count * gd_dtype_size(dtype), NULL,
                             NULL, &tensor, NULL));
    return tensor;
}

static void small_by_hand(void **state)
{
    const float values[] = {1, -3, 0, -0.0f, NAN, INFINITY, -INFINITY, FLT_MIN / 2};
    const struct gd_stats_options options = {.range_count = 1, .range = {{-3, 0}}};
    struct gd_tensor *tensor = make_tensor(GD_FLOAT32, values, 8);
    struct gd_stats s;

    assert_ok(gd_stats_compute(tensor, NULL, &options, &s, NULL));
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
    struct gd_tensor *a = make_tensor(GD_FLOAT32, cur, 7), *b = make_tensor(GD_FLOAT32, old, 7);
    struct gd_stats s;

    assert_ok(gd_stats_compute(a, b, &options, &s, NULL));
    assert_true(s.has_prev);
    assert_int_equal(s.mismatch, 3); /* 2, NaN, and infinities of different signs */
    assert_true(s.max_abs_delta == 0.5);
    assert_true(fabs(s.mean_abs_delta - 0.5001 / 4) < 1e-5);
    assert_true(fabs(s.dot - (1 + 5 + 16.0004)) < 1e-5);
    gd_tensor_unref(a);
    gd_tensor_unref(b);
}

static void what_cannot_be_compared(void **state)
{
    const int32_t values[] = {1, 2, 3, 4};
    struct gd_tensor *four = make_tensor(GD_INT32, values, 4),
                     *three = make_tensor(GD_INT32, values, 3),
                     *other = make_tensor(GD_FLOAT32, values, 4);
    struct gd_stats s = {.count = 77};
    struct gd_err err;

    assert_int_equal(gd_stats_compute(four, three, NULL, &s, &err), GD_EINVAL);
    assert_string_equal(err.text, "cannot compare int32 (4,) with int32 (3,): type and shape must "
                                  "match");
    assert_int_equal(gd_stats_compute(four, other, NULL, &s, &err), GD_EINVAL);
    assert_int_equal(s.count, 77);
    gd_tensor_unref(four);
    gd_tensor_unref(three);
    gd_tensor_unref(other);
}

/* A view of one row repeated many times: a huge shape, little memory, known sums. */
static void many_elements(void **state)
{
    enum { ROW = 2000 };
    const struct gd_shape shape = {.rank = 2, .dim = {MANY_ROWS, ROW}};
    const int64_t stride[GD_MAX_RANK] = {0, 4};
    const double a = (double)0.1f, b = (double)1000.3f, n = (double)MANY_ROWS * ROW;
    float values[ROW];
    struct gd_tensor *row, *tensor;
    struct gd_stats s;

    for (int i = 0; i < ROW; i++) {
        values[i] = i % 2 ? 0.1f : 1000.3f;
    }
    row = make_tensor(GD_FLOAT32, values, ROW);
    assert_ok(gd_tensor_view(row, &shape, stride, 0, &tensor, NULL));
    assert_ok(gd_stats_compute(tensor, NULL, NULL, &s, NULL));
    gd_tensor_unref(tensor);
    gd_tensor_unref(row);
    assert_int_equal(s.count, MANY_ROWS * ROW);
    assert_true(fabs(s.mean / ((a + b) / 2) - 1) < 1e-12);
    assert_true(fabs(s.sum_sq / ((a * a + b * b) / 2 * n) - 1) < 1e-12);
    assert_true(fabs(s.std / ((b - a) / 2) - 1) < 1e-12);
}

/* A training thread may trap on NaN and flush denormals to zero. */
static void the_trainers_environment_does_not_matter(void **state)
{
    const float values[] = {NAN, INFINITY, FLT_MIN / 2, FLT_MAX, 0};
    struct gd_tensor *tensor = make_tensor(GD_FLOAT32, values, 5);
    struct gd_stats s;
    uint64_t bins[2];

#ifdef __SSE__
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
#endif
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_INVALID | FE_OVERFLOW | FE_DIVBYZERO);
    assert_ok(gd_stats_compute(tensor, tensor, NULL, &s, NULL));
    assert_ok(gd_stats_histogram(tensor, 0, (double)FLT_MAX, 2, bins, NULL));
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

/* One row repeated: a tensor of many pieces in little memory. */
static struct gd_tensor *make_tall(enum gd_dtype dtype, const void *row, int64_t columns,
                                   int64_t rows)
{
    const struct gd_shape shape = {.rank = 2, .dim = {rows, columns}};
    const int64_t stride[GD_MAX_RANK] = {0, (int64_t)gd_dtype_size(dtype)};
    struct gd_tensor *one = make_tensor(dtype, row, columns), *tensor;

    assert_ok(gd_tensor_view(one, &shape, stride, 0, &tensor, NULL));
    gd_tensor_unref(one);
    return tensor;
}

static void assert_same(const struct gd_stats *a, const struct gd_stats *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->nan, b->nan);
    assert_int_equal(a->zero, b->zero);
    assert_int_equal(a->positive, b->positive);
    assert_int_equal(a->negative, b->negative);
    assert_int_equal(a->mismatch, b->mismatch);
    assert_memory_equal(a->in_range, b->in_range, sizeof(a->in_range));
    assert_true(a->min == b->min && a->max == b->max);
    assert_true(a->mean == b->mean && a->abs_mean == b->abs_mean);
    assert_true(a->sum_sq == b->sum_sq && a->std == b->std);
    assert_true(a->mean_abs_delta == b->mean_abs_delta && a->mean_delta == b->mean_delta);
    assert_true(a->sum_sq_delta == b->sum_sq_delta && a->max_abs_delta == b->max_abs_delta);
    assert_true(a->mean_abs_prev == b->mean_abs_prev && a->sum_sq_prev == b->sum_sq_prev);
    assert_true(a->dot == b->dot);
}

static void threads_do_not_change_the_result(void **state)
{
    enum { ROW = 4099 };
    const int64_t rows = MANY_ROWS / 25;
    struct gd_stats_options options = {.range_count = 1, .range = {{0, 1}}, .rtol = 1e-3};
    double values[ROW], others[ROW];
    struct gd_tensor *cur, *prev;
    struct gd_stats one, more;

    for (int i = 0; i < ROW; i++) {
        values[i] = sin(i * 0.7) * exp(i % 60);
        others[i] = values[i] * (i % 3 ? 1 : 1.1);
    }
    values[77] = NAN;
    cur = make_tall(GD_FLOAT64, values, ROW, rows);
    prev = make_tall(GD_FLOAT64, others, ROW, rows);
    assert_ok(gd_stats_compute(cur, prev, &options, &one, NULL));
    assert_int_equal(one.nan, rows);
    for (options.threads = 2; options.threads < 200; options.threads *= 3) {
        assert_ok(gd_stats_compute(cur, prev, &options, &more, NULL));
        assert_same(&more, &one);
    }
    gd_tensor_unref(cur);
    gd_tensor_unref(prev);
}

/* New worker threads inherit the environment set here. */
static void threads_in_the_trainers_environment(void **state)
{
    enum { ROW = 4096 };
    const int64_t rows = MANY_ROWS / 10;
    const struct gd_stats_options options = {.threads = 9};
    float values[ROW];
    struct gd_tensor *tensor;
    struct gd_stats s;

    for (int i = 0; i < ROW; i++) {
        values[i] = i % 2 ? FLT_MIN / 4 : i % 4 ? NAN : 1;
    }
    tensor = make_tall(GD_FLOAT32, values, ROW, rows);
#ifdef __SSE__
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_INVALID | FE_OVERFLOW | FE_DIVBYZERO);
    assert_ok(gd_stats_compute(tensor, NULL, &options, &s, NULL));
    fesetenv(FE_DFL_ENV);
    assert_int_equal(s.denormal, rows * ROW / 2);
    assert_int_equal(s.nan, rows * ROW / 4);
    assert_int_equal(s.zero, 0);
    gd_tensor_unref(tensor);
}

static void too_many_ranges(void **state)
{
    const float values[] = {1};
    const struct gd_stats_options options = {.range_count = GD_MAX_RANGES + 1};
    struct gd_tensor *tensor = make_tensor(GD_FLOAT32, values, 1);
    struct gd_stats s;
    struct gd_err err;

    assert_int_equal(gd_stats_compute(tensor, NULL, &options, &s, &err), GD_EINVAL);
    assert_string_equal(err.text, "17 ranges: expected 0 to 16");
    gd_tensor_unref(tensor);
}

static bool is_close(double a, double b)
{
    return fabs(a - b) <= 1e-13 * (1 + fabs(a));
}

static void assert_near(const struct gd_stats *a, const struct gd_stats *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->nan, b->nan);
    assert_int_equal(a->zero, b->zero);
    assert_int_equal(a->positive, b->positive);
    assert_int_equal(a->mismatch, b->mismatch);
    assert_true(a->min == b->min && a->max == b->max && a->max_abs_delta == b->max_abs_delta);
    assert_true(is_close(a->mean, b->mean) && is_close(a->sum_sq, b->sum_sq) &&
                is_close(a->std, b->std));
    assert_true(is_close(a->mean_delta, b->mean_delta) && is_close(a->dot, b->dot));
    assert_true(is_close(a->mean_abs_delta, b->mean_abs_delta) &&
                is_close(a->sum_sq_prev, b->sum_sq_prev));
}

/* Elements are visited in memory order, which differs for each layout. */
enum { A = 7, B = 30, C = 11 };
static const struct {
    int64_t stride[3]; /* in elements */
    int64_t room;      /* elements of memory */
    int64_t offset;
} layouts[] = {
    {{B * C, C, 1}, A *B *C, 0},
    {{1, A, A *B}, A *B *C, 0},
    {{B * C * 2, C * 2, 2}, A *B *C * 2, 1},
    {{-B * C, C, 1}, A *B *C, (A - 1) * B *C},
    {{B * C, C, -1}, A *B *C, C - 1},
    {{C, A *C, 1}, A *B *C, 0},
};

static void strides_do_not_change_the_result(void **state)
{
    const struct gd_shape shape = {.rank = 3, .dim = {A, B, C}};
    struct gd_stats first, s;

    for (size_t l = 0; l < sizeof(layouts) / sizeof(layouts[0]); l++) {
        const struct gd_shape flat = {.rank = 1, .dim = {layouts[l].room}};
        const int64_t *st = layouts[l].stride;
        int64_t stride[GD_MAX_RANK] = {st[0] * 4, st[1] * 4, st[2] * 4};
        struct gd_tensor *memory, *view, *other;
        float *data, values[A * B * C];

        assert_ok(gd_tensor_create(GD_FLOAT32, &flat, 0, &memory, NULL));
        data = (float *)(void *)gd_tensor_bytes_mut(memory);
        for (int64_t i = 0; i < layouts[l].room; i++) {
            data[i] = NAN;
        }
        for (int64_t i = 0; i < (int64_t)A * B * C; i++) {
            values[i] = (float)cos((double)i);
            data[layouts[l].offset + i / (B * C) * st[0] + i / C % B * st[1] + i % C * st[2]] =
                (float)sin((double)i);
        }
        assert_ok(
            gd_tensor_wrap(GD_FLOAT32, &shape, values, sizeof(values), NULL, NULL, &other, NULL));
        assert_ok(gd_tensor_view(memory, &shape, stride, layouts[l].offset * 4, &view, NULL));
        assert_ok(gd_stats_compute(view, other, NULL, &s, NULL));
        assert_int_equal(s.nan, 0);
        if (l == 0) {
            first = s;
        }
        assert_near(&s, &first);
        assert_ok(gd_stats_compute(other, view, NULL, &s, NULL));
        assert_true(is_close(s.mean_delta, -first.mean_delta) && is_close(s.dot, first.dot));
        gd_tensor_unref(other);
        gd_tensor_unref(view);
        gd_tensor_unref(memory);
    }
}

/* The smallest possible ranges, and numbers far outside. */
static void histogram_of_denormals(void **state)
{
    const double tiny = 0x1p-1074;
    const double values[] = {0, tiny, 3 * tiny, 4 * tiny, -tiny, 1, -1, DBL_MAX, -INFINITY, NAN};
    struct gd_tensor tensor = {
        .dtype = GD_FLOAT64, .refs = 1, .data = (const unsigned char *)values};
    uint64_t bins[4], many[300];
    tensor.shape.rank = 1;
    tensor.shape.dim[0] = sizeof(values) / sizeof(*values);
    tensor.stride[0] = sizeof(*values);
    assert_ok(gd_stats_histogram(&tensor, 0, 4 * tiny, 4, bins, NULL));
    assert_true(bins[0] == 1 && bins[1] == 1 && bins[2] == 0 && bins[3] == 2);
    assert_ok(gd_stats_histogram(&tensor, 0, tiny, 4, bins, NULL));
    assert_true(bins[0] == 1 && bins[1] == 0 && bins[2] == 0 && bins[3] == 1);
    assert_ok(gd_stats_histogram(&tensor, -tiny, tiny, 300, many, NULL));
    assert_true(many[0] == 1 && many[150] == 1 && many[299] == 1);
    assert_ok(gd_stats_histogram(&tensor, 1, 1, 4, bins, NULL));
    assert_true(bins[0] + bins[1] + bins[2] == 0 && bins[3] == 1);
    assert_ok(gd_stats_histogram(&tensor, 0, DBL_MIN, 4, bins, NULL));
    assert_true(bins[0] == 4 && bins[1] + bins[2] + bins[3] == 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(small_by_hand),
    cmocka_unit_test(against_the_step_before),
    cmocka_unit_test(what_cannot_be_compared),
    cmocka_unit_test(the_trainers_environment_does_not_matter),
    cmocka_unit_test(many_elements),
    cmocka_unit_test(threads_do_not_change_the_result),
    cmocka_unit_test(threads_in_the_trainers_environment),
    cmocka_unit_test(too_many_ranges),
    cmocka_unit_test(histogram_of_denormals),
    cmocka_unit_test(strides_do_not_change_the_result),
};

RUN_TESTS()
