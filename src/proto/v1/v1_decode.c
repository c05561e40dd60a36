// SPDX-License-Identifier: GPL-3.0-or-later
/* Types, shapes and statistics as the engine has them, from their messages. */
#include <math.h>
#include <string.h>

#include "proto/v1/v1_impl.h"

enum gd_dtype v1_dtype(Gradb__V1__DataType type)
{
    return (int)type > 0 && (int)type < GD_DT_COUNT ? (enum gd_dtype)type : GD_DT_NONE;
}

const char *v1_phase_name(Gradb__V1__Phase phase)
{
    switch (phase) {
    case GRADB__V1__PHASE__PHASE_FORWARD: return "forward";
    case GRADB__V1__PHASE__PHASE_BACKWARD: return "backward";
    case GRADB__V1__PHASE__PHASE_OPTIMIZER: return "optimizer";
    default: return "";
    }
}

int v1_shape(size_t rank, const int64_t *dims, bool partial, struct gd_shape *ret,
             struct gd_err *err)
{
    if (rank > GD_MAX_RANK) {
        return gd_fail(err, GD_EPROTO, "a shape of %zu dimensions: at most %d", rank, GD_MAX_RANK);
    }
    ret->rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < (partial ? -1 : 0)) {
            return gd_fail(err, GD_EPROTO, "dimension %zu of a shape is %lld", i,
                           (long long)dims[i]);
        }
        ret->dim[i] = dims[i];
    }
    if (!partial && gd_shape_count(ret) < 0) {
        return gd_fail(err, GD_EPROTO, "the number of elements of a shape overflows");
    }
    return GD_OK;
}

void v1_value_decode(const Gradb__V1__Stats *m, struct gd_stats *ret)
{
    *ret = (struct gd_stats){.count = m->count,
                             .nan = m->nan,
                             .pos_inf = m->pos_inf,
                             .neg_inf = m->neg_inf,
                             .zero = m->zero,
                             .neg_zero = m->neg_zero,
                             .positive = m->positive,
                             .negative = m->negative,
                             .denormal = m->denormal,
                             .min = m->min,
                             .max = m->max,
                             .mean = m->mean,
                             .abs_mean = m->abs_mean,
                             .sum_sq = m->sum_sq,
                             .std = m->std,
                             .units = m->units,
                             .dead_units = m->dead_units};
    ret->range_count = m->n_in_range < GD_MAX_RANGES ? (int)m->n_in_range : GD_MAX_RANGES;
    for (int i = 0; i < ret->range_count; i++) {
        ret->in_range[i] = m->in_range[i];
    }
    if (m->difference) {
        ret->has_prev = true;
        ret->mean_abs_delta = m->difference->mean_abs_delta;
        ret->max_abs_delta = m->difference->max_abs_delta;
        ret->mean_abs_prev = m->difference->mean_abs_previous;
        ret->dot = m->difference->dot;
        ret->sum_sq_prev = m->difference->sum_sq_previous;
        ret->mismatch = m->difference->mismatch;
        ret->unpaired = m->difference->unpaired;
        ret->mean_delta = m->difference->mean_delta;
        ret->sum_sq_delta = m->difference->sum_sq_delta;
    }
    gd_stats_prove(m->max, m->min, m->mean, m->sum_sq, ret);
}
