// SPDX-License-Identifier: MIT
/*
 * Blocks are added by two-sum, so the error does not grow with the number of elements. Squared
 * deviations about the means of two pieces are joined by Chan's rule, which keeps std right where
 * the mean is large.
 */
#include <math.h>

#include "base/stats_impl.h"

static void sum_add(struct gd_sum *sum, double x)
{
    double total = sum->value + x;
    double part = total - sum->value;

    sum->lost += (sum->value - (total - part)) + (x - part);
    sum->value = total;
}

static void sum_join(struct gd_sum *sum, const struct gd_sum *next)
{
    sum_add(sum, next->value);
    sum->lost += next->lost;
}

static double sum_get(const struct gd_sum *sum)
{
    /* Once it has overflowed, what was lost is NaN. */
    return isfinite(sum->value) ? sum->value + sum->lost : sum->value;
}

void gd_stats_part_init(struct gd_stats_part *part)
{
    *part = (struct gd_stats_part){.min = INFINITY, .max = -INFINITY};
}

/* More elements with this mean and m2. */
static void spread_join(struct gd_stats_part *part, uint64_t finite, double mean, double m2)
{
    double n = (double)finite, total = (double)part->finite + n;
    double delta = mean - part->mean;

    if (!isfinite(mean)) {
        /* The sum overflowed; so has the deviation. */
        part->m2.value = INFINITY;
        return;
    }
    sum_add(&part->m2, m2);
    sum_add(&part->m2, delta * (delta * ((double)part->finite * n / total)));
    part->mean += delta * (n / total);
}

static void ends_join(struct gd_stats_part *part, double min, double max)
{
    part->min = min < part->min ? min : part->min;
    part->max = max > part->max ? max : part->max;
}

void gd_stats_part_sums(struct gd_stats_part *part, const struct gd_block_sums *sums, double m2)
{
    if (sums->finite == 0) {
        return;
    }
    sum_add(&part->sum, sums->sum);
    sum_add(&part->abs, sums->abs);
    sum_add(&part->sq, sums->sq);
    ends_join(part, sums->min, sums->max);
    spread_join(part, sums->finite, sums->sum / (double)sums->finite, m2);
    part->finite += sums->finite;
}

void gd_stats_part_pair(struct gd_stats_part *part, const struct gd_block_pair *pair,
                        uint64_t pairs, uint64_t others)
{
    sum_add(&part->delta, pair->delta);
    sum_add(&part->abs_delta, pair->abs_delta);
    sum_add(&part->sq_delta, pair->sq_delta);
    sum_add(&part->abs_prev, pair->abs_prev);
    sum_add(&part->sq_prev, pair->sq_prev);
    sum_add(&part->dot, pair->dot);
    part->max_delta = pair->max_delta > part->max_delta ? pair->max_delta : part->max_delta;
    part->pairs += pairs;
    part->mismatch += pairs + others - pair->near;
}

static void counts_join(struct gd_stats_part *part, const struct gd_stats_part *next)
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
    sum_join(&part->sum, &next->sum);
    sum_join(&part->abs, &next->abs);
    sum_join(&part->sq, &next->sq);
    sum_join(&part->delta, &next->delta);
    sum_join(&part->abs_delta, &next->abs_delta);
    sum_join(&part->sq_delta, &next->sq_delta);
    sum_join(&part->abs_prev, &next->abs_prev);
    sum_join(&part->sq_prev, &next->sq_prev);
    sum_join(&part->dot, &next->dot);
    if (next->finite) {
        spread_join(part, next->finite, next->mean, next->m2.value);
        part->m2.lost += next->m2.lost;
    }
    ends_join(part, next->min, next->max);
    part->max_delta = next->max_delta > part->max_delta ? next->max_delta : part->max_delta;
    counts_join(part, next);
}

static void finish_pairs(const struct gd_stats_part *part, struct gd_stats *ret)
{
    double pairs = (double)part->pairs;

    ret->sum_sq_delta = sum_get(&part->sq_delta);
    ret->sum_sq_prev = sum_get(&part->sq_prev);
    ret->dot = sum_get(&part->dot);
    ret->max_abs_delta = part->max_delta;
    ret->mismatch = part->mismatch;
    ret->unpaired = ret->has_prev ? part->count - part->pairs : 0;
    if (part->pairs) {
        ret->mean_delta = sum_get(&part->delta) / pairs;
        ret->mean_abs_delta = sum_get(&part->abs_delta) / pairs;
        ret->mean_abs_prev = sum_get(&part->abs_prev) / pairs;
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
    ret->sum_sq = sum_get(&part->sq);
    if (part->finite) {
        ret->mean = sum_get(&part->sum) / n;
        ret->abs_mean = sum_get(&part->abs) / n;
        ret->std = sqrt(sum_get(&part->m2) / n);
    }
    for (size_t i = 0; i < GD_MAX_RANGES; i++) {
        ret->in_range[i] = part->in_range[i];
    }
    finish_pairs(part, ret);
}
