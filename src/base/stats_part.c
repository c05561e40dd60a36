// SPDX-License-Identifier: MIT
/*
 * Blocks are added by two-sum, so that the error does not grow with the number of elements. Squared
 * deviations of two pieces are joined by Chan's formula, which keeps std exact for large means.
 */
#include <math.h>

#include "base/stats_impl.h"

static void add_to_sum(struct gd_sum *sum, double x)
{
    double total = sum->value + x;
    double part = total - sum->value;

    sum->lost += (sum->value - (total - part)) + (x - part);
    sum->value = total;
}

static void join_sums(struct gd_sum *sum, const struct gd_sum *next)
{
    add_to_sum(sum, next->value);
    sum->lost += next->lost;
}

static double get_sum(const struct gd_sum *sum)
{
    /* After an overflow `lost` is NaN. */
    return isfinite(sum->value) ? sum->value + sum->lost : sum->value;
}

void gd_stats_part_init(struct gd_stats_part *part)
{
    *part = (struct gd_stats_part){.min = INFINITY, .max = -INFINITY};
}

/* Joins elements with this mean and m2. */
static void join_spread(struct gd_stats_part *part, uint64_t finite, double mean, double m2)
{
    double n = (double)finite, total = (double)part->finite + n;
    double delta = mean - part->mean;

    if (!isfinite(mean)) {
        /* The sum overflowed, and so did the deviation. */
        part->m2.value = INFINITY;
        return;
    }
    add_to_sum(&part->m2, m2);
    add_to_sum(&part->m2, delta * (delta * ((double)part->finite * n / total)));
    part->mean += delta * (n / total);
}

static void join_ends(struct gd_stats_part *part, double min, double max)
{
    part->min = min < part->min ? min : part->min;
    part->max = max > part->max ? max : part->max;
}

void gd_stats_part_sums(struct gd_stats_part *part, const struct gd_block_sums *sums, double m2)
{
    if (sums->finite == 0) {
        return;
    }
    add_to_sum(&part->sum, sums->sum);
    add_to_sum(&part->abs, sums->abs);
    add_to_sum(&part->sq, sums->sq);
    join_ends(part, sums->min, sums->max);
    join_spread(part, sums->finite, sums->sum / (double)sums->finite, m2);
    part->finite += sums->finite;
}

void gd_stats_part_pair(struct gd_stats_part *part, const struct gd_block_pair *pair,
                        uint64_t pairs, uint64_t others)
{
    add_to_sum(&part->delta, pair->delta);
    add_to_sum(&part->abs_delta, pair->abs_delta);
    add_to_sum(&part->sq_delta, pair->sq_delta);
    add_to_sum(&part->abs_prev, pair->abs_prev);
    add_to_sum(&part->sq_prev, pair->sq_prev);
    add_to_sum(&part->dot, pair->dot);
    part->max_delta = pair->max_delta > part->max_delta ? pair->max_delta : part->max_delta;
    part->pairs += pairs;
    part->mismatch += pairs + others - pair->near;
}

static void join_counts(struct gd_stats_part *part, const struct gd_stats_part *next)
{
    part->count += next->count;
    part->finite += next->finite;
    part->pairs += next->pairs;
    part->nan += next->nan;
    part->pos_inf += next->pos_inf;
    part->neg_inf += next->neg_inf;
    part->zero += next->zero;
    part->neg_zero += next->neg_zero;
    part->negative += next->negative;
    part->denormal += next->denormal;
    part->mismatch += next->mismatch;
    for (size_t i = 0; i < GD_MAX_RANGES; i++) {
        part->in_range[i] += next->in_range[i];
    }
}

void gd_stats_part_merge(struct gd_stats_part *part, const struct gd_stats_part *next)
{
    join_sums(&part->sum, &next->sum);
    join_sums(&part->abs, &next->abs);
    join_sums(&part->sq, &next->sq);
    join_sums(&part->delta, &next->delta);
    join_sums(&part->abs_delta, &next->abs_delta);
    join_sums(&part->sq_delta, &next->sq_delta);
    join_sums(&part->abs_prev, &next->abs_prev);
    join_sums(&part->sq_prev, &next->sq_prev);
    join_sums(&part->dot, &next->dot);
    if (next->finite) {
        join_spread(part, next->finite, next->mean, next->m2.value);
        part->m2.lost += next->m2.lost;
    }
    join_ends(part, next->min, next->max);
    part->max_delta = next->max_delta > part->max_delta ? next->max_delta : part->max_delta;
    join_counts(part, next);
}

static void finish_pairs(const struct gd_stats_part *part, struct gd_stats *ret)
{
    double pairs = (double)part->pairs;

    ret->sum_sq_delta = get_sum(&part->sq_delta);
    ret->sum_sq_prev = get_sum(&part->sq_prev);
    ret->dot = get_sum(&part->dot);
    ret->max_abs_delta = part->max_delta;
    ret->mismatch = part->mismatch;
    ret->unpaired = ret->has_prev ? part->count - part->pairs : 0;
    if (part->pairs) {
        ret->mean_delta = get_sum(&part->delta) / pairs;
        ret->mean_abs_delta = get_sum(&part->abs_delta) / pairs;
        ret->mean_abs_prev = get_sum(&part->abs_prev) / pairs;
    }
}

void gd_stats_part_finish(const struct gd_stats_part *part, struct gd_stats *ret)
{
    double n = (double)part->finite;

    ret->count = part->count;
    ret->nan = part->nan;
    ret->pos_inf = part->pos_inf;
    ret->neg_inf = part->neg_inf;
    ret->zero = part->zero;
    ret->neg_zero = part->neg_zero;
    ret->negative = part->negative;
    ret->positive = part->finite - part->negative - part->zero;
    ret->denormal = part->denormal;
    ret->min = part->min;
    ret->max = part->max;
    ret->sum_sq = get_sum(&part->sq);
    if (part->finite) {
        ret->mean = get_sum(&part->sum) / n;
        ret->abs_mean = get_sum(&part->abs) / n;
        ret->std = sqrt(get_sum(&part->m2) / n);
    }
    for (size_t i = 0; i < GD_MAX_RANGES; i++) {
        ret->in_range[i] = part->in_range[i];
    }
    finish_pairs(part, ret);
}
