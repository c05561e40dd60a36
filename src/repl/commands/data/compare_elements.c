// SPDX-License-Identifier: GPL-3.0-or-later
/* Comparing two tensors element by element. */
#include <math.h>
#include <string.h>

#include "repl/commands/data/compare.h"
#include "repl/core/work.h"

#define PIECE ((int64_t)1 << 16) /* elements between two checks for Ctrl-C */

/* Identical bytes cover equal infinities and NaN, whose difference is not a number. */
static bool same_bytes(const struct gd_tensor *a, const unsigned char *x, const unsigned char *y)
{
    return memcmp(x, y, gd_dtype_size(a->dtype)) == 0;
}

/* Differences of 64-bit integers that are equal as doubles. */
static double difference_of_wide(enum gd_dtype dtype, const unsigned char *x,
                                 const unsigned char *y)
{
    uint64_t a, b;
    bool more;

    memcpy(&a, x, 8);
    memcpy(&b, y, 8);
    more = dtype == GD_UINT64 ? a > b : (int64_t)a > (int64_t)b;
    return more ? (double)(a - b) : -(double)(b - a);
}

/* a - b; for complex numbers its magnitude. */
static double element_difference(const struct gd_tensor *a, const unsigned char *x,
                                 const unsigned char *y)
{
    enum gd_dtype dtype = a->dtype;

    if (dtype == GD_INT64 || dtype == GD_UINT64) {
        return difference_of_wide(dtype, x, y);
    }
    if (gd_dtype_is_complex(dtype)) {
        enum gd_dtype part = dtype == GD_COMPLEX64 ? GD_FLOAT32 : GD_FLOAT64;
        size_t half = gd_dtype_size(part);

        return hypot(gd_dtype_load(part, x) - gd_dtype_load(part, y),
                     gd_dtype_load(part, x + half) - gd_dtype_load(part, y + half));
    }
    return gd_dtype_load(dtype, x) - gd_dtype_load(dtype, y);
}

static double magnitude_of(const struct gd_tensor *a, const unsigned char *x)
{
    if (gd_dtype_is_complex(a->dtype)) {
        enum gd_dtype part = a->dtype == GD_COMPLEX64 ? GD_FLOAT32 : GD_FLOAT64;

        return hypot(gd_dtype_load(part, x), gd_dtype_load(part, x + gd_dtype_size(part)));
    }
    return fabs(gd_dtype_load(a->dtype, x));
}

static bool is_nan(const struct gd_tensor *a, const unsigned char *x)
{
    return isnan(magnitude_of(a, x));
}

static bool is_wanted(struct repl_work *work, const struct compare_sides *sides, int64_t elements)
{
    return (elements % PIECE != 0 && !work->stopped) ||
           repl_work_at(work, (uint64_t)elements * gd_dtype_size(sides->a->dtype));
}

/* The largest finite change: small changes are relative to it. */
static double find_largest(const struct compare_sides *sides, struct repl_work *work)
{
    size_t item = gd_dtype_size(sides->a->dtype);
    int64_t count = gd_tensor_count(sides->a);
    double max = 0;

    for (int64_t i = 0; i < count && is_wanted(work, sides, i); i++) {
        size_t at = (size_t)i * item;
        double d = fabs(element_difference(sides->a, sides->a->data + at, sides->b->data + at));

        if (isfinite(d) && d > max) {
            max = d;
        }
    }
    return max;
}

static bool is_different(const struct compare_sides *sides, const struct compare_rule *rule,
                         double bound, double d, const unsigned char *x, const unsigned char *y)
{
    bool nan_x, nan_y;

    if (!rule->close) {
        return !(fabs(d) <= bound) && !same_bytes(sides->a, x, y);
    }
    nan_x = is_nan(sides->a, x);
    nan_y = is_nan(sides->a, y);
    if (nan_x || nan_y) {
        return !(rule->equal_nan && nan_x && nan_y);
    }
    if (isinf(magnitude_of(sides->a, x)) || isinf(magnitude_of(sides->a, y))) {
        return !same_bytes(sides->a, x, y);
    }
    return !(fabs(d) <= rule->atol + rule->rtol * magnitude_of(sides->a, y));
}

/* Keeps the `max` elements that rank first, best first; earlier elements first when equal. */
static void keep_worst(struct compare_differing *worst, size_t *count, size_t max,
                       struct compare_differing one)
{
    size_t at = *count < max ? (*count)++ : max;

    if (at == max) {
        if (max == 0 || worst[max - 1].rank >= one.rank) {
            return;
        }
        at--;
    }
    while (at > 0 && worst[at - 1].rank < one.rank) {
        worst[at] = worst[at - 1];
        at--;
    }
    worst[at] = one;
}

static void count_difference(struct compare_tally *tally, double d, uint64_t *finite)
{
    tally->count++;
    if (isnan(d)) {
        tally->nan++;
    } else if (isinf(d)) {
        *(d > 0 ? &tally->pos_inf : &tally->neg_inf) += 1;
    } else {
        *(d > 0 ? &tally->positive : d < 0 ? &tally->negative : &tally->zero) += 1;
        tally->min = fmin(tally->min, d);
        tally->max = fmax(tally->max, d);
        tally->mean += (d - tally->mean) / (double)++*finite;
    }
}

void compare_elements(const struct compare_sides *sides, const struct compare_rule *rule,
                      struct repl_work *work, struct compare_tally *tally,
                      struct compare_differing *worst, size_t *worst_count)
{
    size_t item = gd_dtype_size(sides->a->dtype);
    int64_t count = gd_tensor_count(sides->a);
    uint64_t finite = 0;

    *tally = (struct compare_tally){.min = INFINITY, .max = -INFINITY};
    *worst_count = 0;
    tally->max_abs = find_largest(sides, work);
    tally->bound = rule->close ? 0 : tally->max_abs * rule->tolerance;
    for (int64_t i = 0; i < count && is_wanted(work, sides, count + i); i++) {
        const unsigned char *x = sides->a->data + (size_t)i * item;
        const unsigned char *y = sides->b->data + (size_t)i * item;
        double d = element_difference(sides->a, x, y);
        bool other = is_different(sides, rule, tally->bound, d, x, y);

        if (other) {
            tally->changed++;
            keep_worst(worst, worst_count, (size_t)rule->rows,
                       (struct compare_differing){i, d, isfinite(d) ? fabs(d) : INFINITY});
        }
        count_difference(tally, !rule->close && fabs(d) <= tally->bound ? 0 : d, &finite);
    }
}
