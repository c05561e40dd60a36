// SPDX-License-Identifier: GPL-3.0-or-later
/* The statistics that libgradb computes on the CPU, for a test to call: the structs of gradb.h. */
#include <string.h>

#include "agent/gradb.h"
#include "base/stats.h"

__attribute__((visibility("default"))) int stats_of(const gradb_tensor *tensor,
                                                    const gradb_tensor *previous,
                                                    const gradb_stats_wanted *wanted,
                                                    gradb_stats *ret);

static void tensor_of(const gradb_tensor *from, struct gd_tensor *to)
{
    *to = (struct gd_tensor){.dtype = (enum gd_dtype)from->dtype, .refs = 1, .data = from->data};
    to->shape.rank = from->rank;
    for (int i = 0; i < from->rank; i++) {
        to->shape.dim[i] = from->shape[i];
        to->stride[i] = from->strides[i];
    }
}

static void copy_stats(const struct gd_stats *from, gradb_stats *to)
{
    uint64_t *bins = to->histogram;
    *to = (gradb_stats){.count = from->count,
                        .nan = from->nan,
                        .pos_inf = from->pos_inf,
                        .neg_inf = from->neg_inf,
                        .zero = from->zero,
                        .neg_zero = from->neg_zero,
                        .positive = from->positive,
                        .negative = from->negative,
                        .denormal = from->denormal,
                        .min = from->min,
                        .max = from->max,
                        .mean = from->mean,
                        .abs_mean = from->abs_mean,
                        .sum_sq = from->sum_sq,
                        .std = from->std,
                        .has_previous = from->has_prev,
                        .mean_abs_delta = from->mean_abs_delta,
                        .max_abs_delta = from->max_abs_delta,
                        .mean_abs_previous = from->mean_abs_prev,
                        .dot = from->dot,
                        .sum_sq_previous = from->sum_sq_prev,
                        .mean_delta = from->mean_delta,
                        .sum_sq_delta = from->sum_sq_delta,
                        .mismatch = from->mismatch,
                        .unpaired = from->unpaired,
                        .histogram = bins};
    memcpy(to->in_range, from->in_range, sizeof(to->in_range));
}

int stats_of(const gradb_tensor *tensor, const gradb_tensor *previous,
             const gradb_stats_wanted *wanted, gradb_stats *ret)
{
    struct gd_stats_options options = {.range_count = wanted->range_count,
                                       .rtol = wanted->rtol,
                                       .atol = wanted->atol,
                                       .equal_nan = wanted->equal_nan};
    struct gd_tensor now, before;
    struct gd_stats stats;
    struct gd_err err;
    for (int i = 0; i < wanted->range_count; i++) {
        options.range[i] = (struct gd_range){wanted->range_lo[i], wanted->range_hi[i]};
    }
    tensor_of(tensor, &now);
    if (previous) {
        tensor_of(previous, &before);
    }
    int rc = gd_stats_compute(&now, previous ? &before : NULL, &options, &stats, &err);
    if (rc == GD_OK) {
        copy_stats(&stats, ret);
    }
    if (rc == GD_OK && wanted->bins) {
        rc = gd_stats_histogram(&now, wanted->bins_lo, wanted->bins_hi, wanted->bins,
                                ret->histogram, &err);
    }
    return rc;
}
