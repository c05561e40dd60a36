// SPDX-License-Identifier: GPL-3.0-or-later
/* Compares each level of vector code with the reference, including the edges of its loops. */
#include <float.h>
#include <math.h>

#include "../unit.h"
#include "base/stats_impl.h"
#include "random_bits.h"
#include "stats_reference.h"

static const enum gd_dtype floats[] = {GD_FLOAT16, GD_BFLOAT16, GD_FLOAT32, GD_FLOAT64};
static const enum gd_dtype integers[] = {GD_BOOL,  GD_INT8,   GD_INT16,  GD_INT32, GD_INT64,
                                         GD_UINT8, GD_UINT16, GD_UINT32, GD_UINT64};

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static double random_number(void) /* -1 ... 1, denser near 0 */
{
    double x = (double)(int64_t)random_bits() / 0x1p63;

    return x * x * x;
}

static void put_element(enum gd_dtype dtype, unsigned char *p, double value)
{
    float single = (float)value;
    uint16_t half;
    int64_t integer;

    switch (dtype) {
    case GD_FLOAT64: memcpy(p, &value, sizeof(value)); break;
    case GD_FLOAT32: memcpy(p, &single, sizeof(single)); break;
    case GD_FLOAT16:
        half = gd_float_to_half(single);
        memcpy(p, &half, sizeof(half));
        break;
    case GD_BFLOAT16:
        half = gd_float_to_bfloat16(single);
        memcpy(p, &half, sizeof(half));
        break;
    default:
        integer = (int64_t)(value * 100);
        memcpy(p, &integer, gd_dtype_size(dtype)); /* little-endian */
        break;
    }
}

static void fill_elements(enum gd_dtype dtype, unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        put_element(dtype, p + i * gd_dtype_size(dtype), random_number() * 4);
    }
}

static void check_levels(enum gd_dtype dtype, const unsigned char *cur, const unsigned char *prev,
                         size_t n, const struct gd_stats_options *options, const char *what)
{
    const struct gd_shape shape = {.rank = 1, .dim = {(int64_t)n}};
    size_t bytes = n * gd_dtype_size(dtype);
    struct gd_tensor *a, *b = NULL;
    struct gd_stats got, want;
    char text[160];

    assert_ok(gd_tensor_wrap(dtype, &shape, cur, bytes, NULL, NULL, &a, NULL));
    if (prev) {
        assert_ok(gd_tensor_wrap(dtype, &shape, prev, bytes, NULL, NULL, &b, NULL));
    }
    reference_stats(dtype, cur, prev, n, options, &want);
    for (size_t i = 0; gd_stats_levels[i]; i++) {
        if (!gd_stats_levels[i]->runs_here()) {
            continue;
        }
        gd_stats_use_level(gd_stats_levels[i]);
        snprintf(text, sizeof(text), "%s, %zu %s, %s", gd_stats_levels[i]->name, n,
                 gd_dtype_name(dtype), what);
        assert_ok(gd_stats_compute(a, b, options, &got, NULL));
        reference_compare(&got, &want, text);
    }
    gd_stats_use_level(NULL);
    gd_tensor_unref(a);
    gd_tensor_unref(b);
}

/* The allocation ends with the elements, so that a sanitizer detects reads beyond them. */
static unsigned char *make_elements(enum gd_dtype dtype, size_t n, size_t misaligned,
                                    unsigned char **block)
{
    *block = malloc(n * gd_dtype_size(dtype) + misaligned + (n == 0));
    assert_non_null(*block);
    return *block + misaligned;
}

static void check_size(enum gd_dtype dtype, size_t n, size_t misaligned)
{
    const struct gd_stats_options options = {
        .range_count = 2, .range = {{-0.5, 0.25}, {0, 1000}}, .rtol = 0.1, .atol = 0.01};
    unsigned char *cur_block, *prev_block;
    unsigned char *cur = make_elements(dtype, n, misaligned, &cur_block);
    unsigned char *prev = make_elements(dtype, n, misaligned / 2, &prev_block);

    fill_elements(dtype, cur, n);
    memcpy(prev, cur, n * gd_dtype_size(dtype));
    for (size_t i = 0; i < n; i += 3) {
        put_element(dtype, prev + i * gd_dtype_size(dtype), random_number() * 4);
    }
    check_levels(dtype, cur, prev, n, &options, "size");
    free(cur_block);
    free(prev_block);
}

static void sizes_of(const enum gd_dtype *dtypes, size_t count)
{
    for (size_t d = 0; d < count; d++) {
        size_t block = GD_BLOCK_BYTES / gd_dtype_size(dtypes[d]);

        for (size_t n = 0; n < 140; n++) {
            check_size(dtypes[d], n, n % 8);
        }
        for (size_t n = 509; n < 516; n++) {
            check_size(dtypes[d], n, 3);
        }
        for (size_t n = block - 1; n <= block + 33; n += n <= block ? 1 : 16) {
            check_size(dtypes[d], n, 1);
        }
        check_size(dtypes[d], 3 * block + 77, 1);
    }
}

static void sizes_of_floats(void **state)
{
    sizes_of(floats, ARRAY_LEN(floats));
}

static void sizes_of_integers(void **state)
{
    sizes_of(integers, ARRAY_LEN(integers));
}

static const double specials[] = {NAN,     -NAN,     INFINITY,   -INFINITY,  0.0,       -0.0,
                                  0x1p-24, -0x1p-24, 0x1p-133,   -0x1p-133,  0x1p-1074, -0x1p-1074,
                                  65504,   -65504,   0x1.fcp127, -0x1.fcp127};

/* A special value at each place of two vectors and of the remainder, in either tensor. */
static void odd_ones_at_each_place(void **state)
{
    const struct gd_stats_options options = {
        .range_count = 3, .range = {{-INFINITY, 0}, {0, 0}, {-1, INFINITY}}, .equal_nan = true};
    enum { N = 64 + 9 };
    unsigned char cur[N * 8], prev[N * 8];

    for (size_t d = 0; d < ARRAY_LEN(floats); d++) {
        size_t item = gd_dtype_size(floats[d]);

        for (size_t s = 0; s < ARRAY_LEN(specials); s++) {
            for (size_t place = 0; place < N; place++) {
                fill_elements(floats[d], cur, N);
                memcpy(prev, cur, N * item);
                put_element(floats[d], cur + place * item, specials[s]);
                check_levels(floats[d], cur, prev, N, &options, "an odd one");
                put_element(floats[d], prev + place * item, specials[(s + place % 2) % 4]);
                check_levels(floats[d], cur, prev, N, &options, "two odd ones");
                check_levels(floats[d], prev, cur, N, NULL, "two odd ones, turned round");
            }
        }
    }
}

static void nothing_but(void **state)
{
    enum { N = 2048 + 21 };
    static unsigned char cur[N * 8], prev[N * 8];

    for (size_t d = 0; d < ARRAY_LEN(floats); d++) {
        for (size_t s = 0; s < ARRAY_LEN(specials); s++) {
            fill_elements(floats[d], prev, N);
            for (size_t i = 0; i < N; i++) {
                put_element(floats[d], cur + i * gd_dtype_size(floats[d]), specials[s]);
            }
            check_levels(floats[d], cur, NULL, N, NULL, "the same");
            if (floats[d] != GD_FLOAT64 || fabs(specials[s]) < 1e100) {
                check_levels(floats[d], cur, prev, N, NULL, "the same against others");
            }
        }
    }
}

static void mixed_with_many(void **state)
{
    enum { N = 9000 };
    static unsigned char cur[N * 8], prev[N * 8];
    const struct gd_stats_options options = {.rtol = 0.01, .equal_nan = true};

    for (size_t d = 0; d < ARRAY_LEN(floats); d++) {
        size_t item = gd_dtype_size(floats[d]);

        for (size_t round = 0; round < 8; round++) {
            fill_elements(floats[d], cur, N);
            fill_elements(floats[d], prev, N);
            for (size_t i = 0; i < N; i += 1 + random_bits() % (1 + 40 * round)) {
                put_element(floats[d], cur + i * item, specials[random_bits() % 12]);
                put_element(floats[d], prev + i * item, specials[random_bits() % 12]);
            }
            check_levels(floats[d], cur, prev, N, &options, "many odd ones");
        }
    }
}

/* Limits equal to elements, next to elements, and not representable as floats. */
static void ends_of_ranges(void **state)
{
    const struct gd_stats_options options = {.range_count = GD_MAX_RANGES,
                                             .range = {{-1, 1},
                                                       {-0.0, 0.0},
                                                       {0.0, -0.0},
                                                       {1, -1},
                                                       {NAN, 1},
                                                       {-1, NAN},
                                                       {-INFINITY, INFINITY},
                                                       {INFINITY, INFINITY},
                                                       {-INFINITY, -1e300},
                                                       {1e300, INFINITY},
                                                       {0x1.0000000000001p0, 2},
                                                       {0.5, 0x1.fffffffffffffp-1},
                                                       {0x1p-1074, 0x1p-1060},
                                                       {-0x1p-1074, 0x1p-1074},
                                                       {0x1p-149, 0x1p-126},
                                                       {-65504, 65504}}};
    const double ends[] = {-1,       1,     0.0,     -0.0,     0.5,       0x1p-149,
                           0x1p-24,  65504, -65504,  INFINITY, NAN,       -INFINITY,
                           0x1p-133, 2,     DBL_MAX, -DBL_MAX, 0x1p-1074, FLT_MAX};
    enum { N = 1500 };
    static unsigned char cur[N * 8];

    for (size_t d = 0; d < ARRAY_LEN(floats); d++) {
        for (size_t i = 0; i < N; i++) {
            put_element(
                floats[d], cur + i * gd_dtype_size(floats[d]),
                ends[random_bits() % (ARRAY_LEN(ends) - (floats[d] == GD_FLOAT64 ? 4 : 0))]);
        }
        check_levels(floats[d], cur, NULL, N, &options, "ranges");
    }
    for (size_t d = 0; d < ARRAY_LEN(integers); d++) {
        fill_elements(integers[d], cur, N);
        check_levels(integers[d], cur, NULL, N, &options, "ranges");
    }
}

/* Random bits cover all exponents. Not for float64, whose squares would overflow. */
static void any_bits(void **state)
{
    enum { N = 65536 };
    static unsigned char cur[N * 4], prev[N * 4];

    for (size_t d = 0; d < 3; d++) {
        size_t item = gd_dtype_size(floats[d]);

        for (size_t i = 0; i < N; i++) {
            uint64_t bits = item == 2 ? i : random_bits(), other = random_bits();

            memcpy(cur + i * item, &bits, item);
            memcpy(prev + i * item, &other, item);
        }
        check_levels(floats[d], cur, prev, N, NULL, "any bits");
    }
}

/* Sums that plain float32 accumulation gets wrong. */
static void hard_sums(void **state)
{
    enum { N = 300000 };
    unsigned char *cur = malloc(N * 8);

    assert_non_null(cur);
    for (size_t d = 0; d < ARRAY_LEN(floats); d++) {
        size_t item = gd_dtype_size(floats[d]);

        for (size_t i = 0; i < N; i++) { /* a large mean, a small deviation */
            put_element(floats[d], cur + i * item, 1000 + random_number());
        }
        check_levels(floats[d], cur, NULL, N, NULL, "far from zero");
        for (size_t i = 0; i < N; i++) { /* alternating signs */
            put_element(floats[d], cur + i * item, (i % 2 ? 1 : -1) * (30000 + random_number()));
        }
        check_levels(floats[d], cur, NULL, N, NULL, "signs in turn");
        for (size_t i = 0; i < N; i++) { /* one large element absorbs many small ones */
            put_element(floats[d], cur + i * item, i == 1000 ? 60000 : 1e-3);
        }
        check_levels(floats[d], cur, NULL, N, NULL, "one large one");
        for (size_t i = 0; i < N; i++) { /* the mean drifts from block to block */
            put_element(floats[d], cur + i * item, (double)(i / 4096) * 100 + random_number());
        }
        check_levels(floats[d], cur, NULL, N, NULL, "stairs");
    }
    free(cur);
}

static void check_huge(const double *values, double mean, double std, const char *what)
{
    enum { N = 5000 };
    static double x[N];
    const struct gd_shape shape = {.rank = 1, .dim = {N}};
    struct gd_tensor *tensor;
    struct gd_stats s;

    for (size_t i = 0; i < N; i++) {
        x[i] = values[i % 4];
    }
    assert_ok(gd_tensor_wrap(GD_FLOAT64, &shape, x, sizeof(x), NULL, NULL, &tensor, NULL));
    for (size_t i = 0; gd_stats_levels[i]; i++) {
        if (!gd_stats_levels[i]->runs_here()) {
            continue;
        }
        gd_stats_use_level(gd_stats_levels[i]);
        assert_ok(gd_stats_compute(tensor, NULL, NULL, &s, NULL));
        assert_int_equal(s.nan + s.pos_inf + s.neg_inf, 0);
        assert_true(s.sum_sq == INFINITY);
        if (!(s.mean == mean || fabs(s.mean - mean) <= 1e-12 * fabs(mean))) {
            fail_msg("%s, %s: mean %g", gd_stats_levels[i]->name, what, s.mean);
        }
        if (!(s.std == std || fabs(s.std - std) <= 1e-12 * std)) {
            fail_msg("%s, %s: std %g", gd_stats_levels[i]->name, what, s.std);
        }
    }
    gd_stats_use_level(NULL);
    gd_tensor_unref(tensor);
}

static void near_the_largest_double(void **state)
{
    const double big = 0x1.8p1023;

    check_huge((double[]){big, big, big, big}, INFINITY, INFINITY, "a sum that is too large");
    check_huge((double[]){-big, -big, -1, -big}, -INFINITY, INFINITY, "one that is too small");
    check_huge((double[]){big, -big, big, -big}, 0, INFINITY, "a sum that comes back");
    check_huge((double[]){0x1p700, 0x1p700, 0x1p700, 0x1p700}, 0x1p700, 0,
               "squares that are too large");
    check_huge((double[]){1e160, -1e160, 1e160, -1e160}, 0, INFINITY, "deviations, too");
}

static void check_all_finite(const struct gd_tensor *tensor, bool expected, const char *what)
{
    for (size_t i = 0; gd_stats_levels[i]; i++) {
        if (!gd_stats_levels[i]->runs_here()) {
            continue;
        }
        gd_stats_use_level(gd_stats_levels[i]);
        if (gd_stats_all_finite(tensor) != expected) {
            fail_msg("%s, %s of %lld: not %d", gd_stats_levels[i]->name, what,
                     (long long)gd_tensor_count(tensor), expected);
        }
    }
    gd_stats_use_level(NULL);
}

/* All elements at the largest finite value, then one non-finite element at each place. */
static void finite_or_not_at_each_place(void **state)
{
    static const double largest[] = {65504, 0x1.fep127, 0x1.fffffep127, DBL_MAX};
    static const double odd[] = {(double)NAN, (double)INFINITY, (double)-INFINITY};
    unsigned char x[700 * sizeof(double)];

    for (size_t i = 0; i < ARRAY_LEN(floats); i++) {
        enum gd_dtype dtype = floats[i];
        size_t item = gd_dtype_size(dtype);
        for (size_t n = 0; n <= 700; n = n < 40 ? n + 1 : n + 311) {
            const struct gd_shape shape = {.rank = 1, .dim = {(int64_t)n}};
            struct gd_tensor *tensor;
            for (size_t j = 0; j < n; j++) {
                put_element(dtype, x + j * item, j % 2 ? largest[i] : -largest[i]);
            }
            assert_ok(gd_tensor_wrap(dtype, &shape, x, n * item, NULL, NULL, &tensor, NULL));
            check_all_finite(tensor, true, gd_dtype_name(dtype));
            for (size_t j = 0; j < n; j++) {
                put_element(dtype, x + j * item, odd[j % ARRAY_LEN(odd)]);
                check_all_finite(tensor, false, gd_dtype_name(dtype));
                put_element(dtype, x + j * item, 0);
            }
            gd_tensor_unref(tensor);
        }
    }
}

/* Only a view's own elements count; a view that is too scattered is not reported as finite. */
static void finite_views(void **state)
{
    const struct gd_shape all = {.rank = 2, .dim = {200, 300}};
    const struct gd_shape turned = {.rank = 2, .dim = {300, 200}}, part = {2, {200, 290}};
    const struct gd_shape column = {.rank = 1, .dim = {200}}, none = {2, {0, 7}};
    const int64_t row = 300 * sizeof(float), item = sizeof(float);
    const int64_t by_row[GD_MAX_RANK] = {row, item}, by_column[GD_MAX_RANK] = {item, row};
    float *x = calloc(200 * 300, sizeof(float));
    struct gd_tensor *base, *view;

    assert_non_null(x);
    assert_ok(
        gd_tensor_wrap(GD_FLOAT32, &all, x, 200 * 300 * sizeof(float), NULL, NULL, &base, NULL));
    x[5 * 300 + 295] = NAN; /* not in `part` */
    assert_ok(gd_tensor_view(base, &part, by_row, 0, &view, NULL));
    check_all_finite(view, true, "a part");
    x[5 * 300 + 289] = INFINITY;
    check_all_finite(view, false, "a part");
    gd_tensor_unref(view);
    assert_ok(gd_tensor_view(base, &turned, by_column, 0, &view, NULL));
    check_all_finite(view, false, "a transposed view");
    x[5 * 300 + 289] = x[5 * 300 + 295] = 1;
    check_all_finite(view, true, "a transposed view");
    gd_tensor_unref(view);
    assert_ok(gd_tensor_view(base, &column, by_row, 0, &view, NULL));
    check_all_finite(view, false, "a column");
    gd_tensor_unref(view);
    assert_ok(gd_tensor_view(base, &none, by_row, 0, &view, NULL));
    check_all_finite(view, true, "no elements");
    gd_tensor_unref(view);
    gd_tensor_unref(base);
    free(x);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sizes_of_floats),
    cmocka_unit_test(sizes_of_integers),
    cmocka_unit_test(odd_ones_at_each_place),
    cmocka_unit_test(nothing_but),
    cmocka_unit_test(mixed_with_many),
    cmocka_unit_test(ends_of_ranges),
    cmocka_unit_test(any_bits),
    cmocka_unit_test(hard_sums),
    cmocka_unit_test(near_the_largest_double),
    cmocka_unit_test(finite_or_not_at_each_place),
    cmocka_unit_test(finite_views),
};

RUN_TESTS()
