// SPDX-License-Identifier: GPL-3.0-or-later
#include "stats_reference.h"

#include <float.h>
#include <math.h>

#include "../unit.h"

/* An IEEE 754 binary float with `exponent` and `mantissa` bits. */
static long double decode_float(uint64_t bits, int exponent, int mantissa)
{
    uint64_t fraction = bits & ((UINT64_C(1) << mantissa) - 1);
    int e = (int)(bits >> mantissa & ((UINT64_C(1) << exponent) - 1));
    int bias = (1 << (exponent - 1)) - 1;
    bool negative = bits >> (mantissa + exponent) & 1;
    long double value;

    if (e == (1 << exponent) - 1) {
        value = fraction ? (long double)NAN : (long double)INFINITY;
    } else if (e == 0) {
        value = ldexpl((long double)fraction, 1 - bias - mantissa);
    } else {
        value = ldexpl((long double)(fraction | UINT64_C(1) << mantissa), e - bias - mantissa);
    }
    return negative ? -value : value;
}

static uint64_t read_bits(const unsigned char *p, size_t size)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < size; i++) {
        bits |= (uint64_t)p[i] << (8 * i);
    }
    return bits;
}

static bool is_signed(enum gd_dtype dtype)
{
    return dtype >= GD_INT8 && dtype <= GD_INT64;
}

long double reference_value(enum gd_dtype dtype, const unsigned char *p)
{
    size_t size = gd_dtype_size(dtype);
    uint64_t bits = read_bits(p, size), sign = UINT64_C(1) << (size * 8 - 1);

    switch (dtype) {
    case GD_BOOL: return bits ? 1 : 0;
    case GD_FLOAT16: return decode_float(bits, 5, 10);
    case GD_BFLOAT16: return decode_float(bits, 8, 7);
    case GD_FLOAT32: return decode_float(bits, 8, 23);
    case GD_FLOAT64: return decode_float(bits, 11, 52);
    default: break;
    }
    if (is_signed(dtype) && bits & sign) {
        return -(long double)(sign - (bits & (sign - 1)));
    }
    /* integers are rounded to doubles first */
    return (long double)(double)bits;
}

static long double smallest_normal(enum gd_dtype dtype)
{
    switch (dtype) {
    case GD_FLOAT16: return 0x1p-14L;
    case GD_BFLOAT16:
    case GD_FLOAT32: return 0x1p-126L;
    case GD_FLOAT64: return 0x1p-1022L;
    default: return 0;
    }
}

static void count_one(long double x, long double tiny, struct gd_stats *s)
{
    s->count++;
    s->nan += isnan(x) != 0;
    s->pos_inf += isinf(x) && x > 0;
    s->neg_inf += isinf(x) && x < 0;
    s->zero += x == 0;
    s->neg_zero += x == 0 && signbit(x);
    s->positive += isfinite(x) && x > 0;
    s->negative += isfinite(x) && x < 0;
    s->denormal += x != 0 && fabsl(x) < tiny;
    if (isfinite(x)) {
        s->min = fmin(s->min, (double)x);
        s->max = fmax(s->max, (double)x);
    }
}

static void about_one(enum gd_dtype dtype, const unsigned char *cur, size_t count,
                      const struct gd_stats_options *options, struct gd_stats *s)
{
    long double sum = 0, abs = 0, sq = 0, m2 = 0, finite;
    size_t item = gd_dtype_size(dtype);

    for (size_t i = 0; i < count; i++) {
        long double x = reference_value(dtype, cur + i * item);

        count_one(x, smallest_normal(dtype), s);
        for (int r = 0; r < s->range_count; r++) {
            s->in_range[r] +=
                x >= (long double)options->range[r].lo && x <= (long double)options->range[r].hi;
        }
        if (isfinite(x)) {
            sum += x;
            abs += fabsl(x);
            sq += x * x;
        }
    }
    finite = (long double)(s->count - s->nan - s->pos_inf - s->neg_inf);
    if (finite == 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        long double x = reference_value(dtype, cur + i * item);

        m2 += isfinite(x) ? (x - sum / finite) * (x - sum / finite) : 0;
    }
    s->mean = (double)(sum / finite);
    s->abs_mean = (double)(abs / finite);
    s->sum_sq = (double)sq;
    s->std = (double)sqrtl(m2 / finite);
}

static void about_both(enum gd_dtype dtype, const unsigned char *cur, const unsigned char *prev,
                       size_t count, const struct gd_stats_options *options, struct gd_stats *s)
{
    long double delta = 0, abs_delta = 0, sq_delta = 0, abs_prev = 0, sq_prev = 0, dot = 0;
    double rtol = options ? options->rtol : 0, atol = options ? options->atol : 0;
    size_t item = gd_dtype_size(dtype), pairs = 0;

    for (size_t i = 0; i < count; i++) {
        long double x = reference_value(dtype, cur + i * item),
                    p = reference_value(dtype, prev + i * item), d = x - p;

        if (!isfinite(x) || !isfinite(p)) {
            s->mismatch += !(x == p || (options && options->equal_nan && isnan(x) && isnan(p)));
            continue;
        }
        pairs++;
        /* as numpy.allclose, in double */
        s->mismatch += !(fabs((double)x - (double)p) <= atol + rtol * fabs((double)p));
        s->max_abs_delta = fmax(s->max_abs_delta, fabs((double)x - (double)p));
        delta += d;
        abs_delta += fabsl(d);
        sq_delta += d * d;
        abs_prev += fabsl(p);
        sq_prev += p * p;
        dot += x * p;
    }
    s->unpaired = count - pairs;
    s->sum_sq_delta = (double)sq_delta;
    s->sum_sq_prev = (double)sq_prev;
    s->dot = (double)dot;
    if (pairs) {
        s->mean_delta = (double)(delta / (long double)pairs);
        s->mean_abs_delta = (double)(abs_delta / (long double)pairs);
        s->mean_abs_prev = (double)(abs_prev / (long double)pairs);
    }
}

void reference_stats(enum gd_dtype dtype, const unsigned char *cur, const unsigned char *prev,
                     size_t count, const struct gd_stats_options *options, struct gd_stats *ret)
{
    *ret = (struct gd_stats){.min = INFINITY,
                             .max = -INFINITY,
                             .has_prev = prev != NULL,
                             .range_count = options ? options->range_count : 0};
    about_one(dtype, cur, count, options, ret);
    if (prev) {
        about_both(dtype, cur, prev, count, options, ret);
    }
}

static void same_count(uint64_t got, uint64_t want, const char *name, const char *what)
{
    if (got != want) {
        fail_msg("%s: %s is %llu, not %llu", what, name, (unsigned long long)got,
                 (unsigned long long)want);
    }
}

static void same_number(double got, double want, double scale, const char *name, const char *what)
{
    /* Each of thousands of denormals may be rounded, which is large relative to them. */
    bool near = fabs(got - want) <= 1e-12 * scale + 1e5 * DBL_TRUE_MIN;

    if (got != want && !near) {
        fail_msg("%s: %s is %.17g, not %.17g", what, name, got, want);
    }
}

static void compare_counts(const struct gd_stats *got, const struct gd_stats *want,
                           const char *what)
{
    same_count(got->count, want->count, "count", what);
    same_count(got->nan, want->nan, "nan", what);
    same_count(got->pos_inf, want->pos_inf, "pos_inf", what);
    same_count(got->neg_inf, want->neg_inf, "neg_inf", what);
    same_count(got->zero, want->zero, "zero", what);
    same_count(got->neg_zero, want->neg_zero, "neg_zero", what);
    same_count(got->positive, want->positive, "positive", what);
    same_count(got->negative, want->negative, "negative", what);
    same_count(got->denormal, want->denormal, "denormal", what);
    same_count(got->mismatch, want->mismatch, "mismatch", what);
    same_count(got->unpaired, want->unpaired, "unpaired", what);
    same_count((uint64_t)got->range_count, (uint64_t)want->range_count, "range_count", what);
    for (int i = 0; i < want->range_count; i++) {
        same_count(got->in_range[i], want->in_range[i], "in_range", what);
    }
}

void reference_compare(const struct gd_stats *got, const struct gd_stats *want, const char *what)
{
    double deltas = fabs(want->mean_abs_delta);

    compare_counts(got, want, what);
    same_number(got->min, want->min, 0, "min", what);
    same_number(got->max, want->max, 0, "max", what);
    same_number(got->mean, want->mean, want->abs_mean, "mean", what);
    same_number(got->abs_mean, want->abs_mean, want->abs_mean, "abs_mean", what);
    same_number(got->sum_sq, want->sum_sq, want->sum_sq, "sum_sq", what);
    same_number(got->std, want->std, want->std + 1e-3 * want->abs_mean, "std", what);
    same_count(got->has_prev, want->has_prev, "has_prev", what);
    same_number(got->mean_delta, want->mean_delta, deltas, "mean_delta", what);
    same_number(got->mean_abs_delta, want->mean_abs_delta, deltas, "mean_abs_delta", what);
    same_number(got->max_abs_delta, want->max_abs_delta, 0, "max_abs_delta", what);
    same_number(got->sum_sq_delta, want->sum_sq_delta, want->sum_sq_delta, "sum_sq_delta", what);
    same_number(got->mean_abs_prev, want->mean_abs_prev, want->mean_abs_prev, "mean_abs_prev",
                what);
    same_number(got->sum_sq_prev, want->sum_sq_prev, want->sum_sq_prev, "sum_sq_prev", what);
    same_number(got->dot, want->dot, sqrt(want->sum_sq) * sqrt(want->sum_sq_prev), "dot", what);
}
