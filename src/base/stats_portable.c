// SPDX-License-Identifier: MIT
/*
 * Statistics in plain C over doubles: the reference for all other levels, the code for the last few
 * elements of a tensor, and the only level on processors without their own.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/stats_impl.h"

static double load_double(const unsigned char *x, size_t i)
{
    double value;

    memcpy(&value, x + i * sizeof(value), sizeof(value));
    return value;
}

static bool is_negative(double x)
{
    return signbit(x) != 0;
}

static void float64_sums_finite(const unsigned char *x, size_t n, struct gd_block_sums *ret)
{
    struct gd_block_sums s = {.min = INFINITY, .max = -INFINITY, .least = INFINITY};

    for (size_t i = 0; i < n; i++) {
        double v = load_double(x, i), size = fabs(v);

        if (!(size <= DBL_MAX)) {
            continue;
        }
        s.sum += v;
        s.abs += size;
        s.sq += v * v;
        s.min = v < s.min ? v : s.min;
        s.max = v > s.max ? v : s.max;
        s.least = size < s.least ? size : s.least;
        s.finite++;
        s.signs += is_negative(v);
    }
    *ret = s;
}

static void float64_sums(const unsigned char *x, size_t n, struct gd_block_sums *ret)
{
    float64_sums_finite(x, n, ret);
    if (ret->finite < n) {
        ret->abs = INFINITY;
    }
}

static double float64_spread(const unsigned char *x, size_t n, double mean, bool all)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        double v = load_double(x, i), d = v - mean;

        sum += all || fabs(v) <= DBL_MAX ? d * d : 0;
    }
    return sum;
}

static void float64_small(const unsigned char *x, size_t n, double tiny, struct gd_block_small *ret)
{
    struct gd_block_small s = {0, 0, 0};

    for (size_t i = 0; i < n; i++) {
        double v = load_double(x, i);

        s.zero += v == 0;
        s.neg_zero += v == 0 && is_negative(v);
        s.below += fabs(v) < tiny;
    }
    *ret = s;
}

static uint64_t float64_within(const unsigned char *x, size_t n, struct gd_range range)
{
    uint64_t count = 0;

    for (size_t i = 0; i < n; i++) {
        double v = load_double(x, i);

        count += v >= range.lo && v <= range.hi;
    }
    return count;
}

static void float64_pair(const unsigned char *x, const unsigned char *p, size_t n, double rtol,
                         double atol, struct gd_block_pair *ret)
{
    struct gd_block_pair s = {.near = 0};

    for (size_t i = 0; i < n; i++) {
        double a = load_double(x, i), b = load_double(p, i), d = a - b, distance = fabs(d);

        s.delta += d;
        s.abs_delta += distance;
        s.sq_delta += d * d;
        s.max_delta = distance > s.max_delta ? distance : s.max_delta;
        s.abs_prev += fabs(b);
        s.sq_prev += b * b;
        s.dot += a * b;
        s.near += distance <= atol + rtol * fabs(b);
    }
    *ret = s;
}

static uint64_t or_elements(const unsigned char *x, size_t bytes, uint64_t mask, uint64_t add)
{
    uint64_t word, all = 0;

    for (size_t i = 0; i < bytes; i += sizeof(word)) {
        memcpy(&word, x + i, sizeof(word));
        all |= (word & mask) + add;
    }
    return all;
}

static bool is_supported(void)
{
    return true;
}

const struct gd_stats_level gd_stats_portable = {
    .name = "portable",
    .runs_here = is_supported,
    .united = or_elements,
    .float64 = {.step = 1,
                .sums = float64_sums,
                .sums_finite = float64_sums_finite,
                .spread = float64_spread,
                .small = float64_small,
                .within = float64_within,
                .pair = float64_pair},
};
