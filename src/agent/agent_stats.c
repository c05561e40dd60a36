// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/agent_impl.h"
#include "engine/stats.h"

#define CODE(name) GRADB__V1__REQUEST_ERROR__CODE__##name
#define MAX_BINS   4096

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static void fail(Gradb__V1__TensorStats *ret, struct gd_arena *arena, int code, const char *text)
{
    static char no_memory[] = "out of memory";
    char *copy = gd_arena_strdup(arena, text);
    ret->error_code = (Gradb__V1__RequestError__Code)code;
    ret->error = copy ? copy : no_memory;
    ret->stats = NULL;
}

static void copy_stats(const struct gd_stats *from, Gradb__V1__Stats *to)
{
    to->count = from->count;
    to->nan = from->nan;
    to->pos_inf = from->pos_inf;
    to->neg_inf = from->neg_inf;
    to->zero = from->zero;
    to->neg_zero = from->neg_zero;
    to->positive = from->positive;
    to->negative = from->negative;
    to->denormal = from->denormal;
    to->min = from->min;
    to->max = from->max;
    to->mean = from->mean;
    to->abs_mean = from->abs_mean;
    to->sum_sq = from->sum_sq;
    to->std = from->std;
}

static void copy_difference(const struct gd_stats *from, Gradb__V1__Difference *to)
{
    gradb__v1__difference__init(to);
    to->mean_abs_delta = from->mean_abs_delta;
    to->max_abs_delta = from->max_abs_delta;
    to->mean_abs_previous = from->mean_abs_prev;
    to->dot = from->dot;
    to->sum_sq_previous = from->sum_sq_prev;
    to->mismatch = from->mismatch;
    to->mean_delta = from->mean_delta;
    to->sum_sq_delta = from->sum_sq_delta;
}

static int code_of(int status)
{
    switch (status) {
    case GD_EUNSUPPORTED: return CODE(UNSUPPORTED);
    case GD_ENOMEM: return CODE(NO_MEMORY);
    case GD_EINVAL: return CODE(INVALID);
    default: return CODE(FAILED);
    }
}

static int histogram(const struct gd_tensor *tensor, const Gradb__V1__Bins *bins,
                     struct gd_arena *arena, Gradb__V1__Stats *ret, struct gd_err *err)
{
    if (bins->count < 1 || bins->count > MAX_BINS || !(bins->lo <= bins->hi)) {
        return gd_fail(err, GD_EINVAL, "a histogram has 1 to %d bins over a range", MAX_BINS);
    }
    uint64_t *counts = gd_arena_zalloc(arena, bins->count * sizeof(*counts));
    if (!counts) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    ret->histogram = counts;
    ret->n_histogram = bins->count;
    return gd_stats_histogram(tensor, bins->lo, bins->hi, bins->count, counts, err);
}

static int compute(const struct gd_tensor *current, const struct gd_tensor *previous,
                   const Gradb__V1__StatsOptions *options, struct gd_arena *arena,
                   Gradb__V1__Stats *ret, struct gd_err *err)
{
    size_t ranges = options ? options->n_ranges : 0;
    struct gd_stats_options o = {.range_count = (int)ranges};
    struct gd_stats stats;

    if (ranges > GD_MAX_RANGES) {
        return gd_fail(err, GD_EINVAL, "%zu ranges: at most %d", ranges, GD_MAX_RANGES);
    }
    for (size_t i = 0; i < ranges; i++) {
        o.range[i] = (struct gd_range){options->ranges[i]->lo, options->ranges[i]->hi};
    }
    if (options) {
        o.rtol = options->rtol;
        o.atol = options->atol;
        o.equal_nan = options->equal_nan;
    }
    int code = gd_stats_compute(current, previous, &o, &stats, err);
    if (code < 0) {
        return code;
    }
    copy_stats(&stats, ret);
    if (stats.has_prev && ret->difference) {
        copy_difference(&stats, ret->difference);
    }
    ret->in_range = gd_arena_zalloc(arena, (ranges + 1) * sizeof(*ret->in_range));
    if (!ret->in_range) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    ret->n_in_range = ranges;
    memcpy(ret->in_range, stats.in_range, ranges * sizeof(*ret->in_range));
    return options && options->histogram ? histogram(current, options->histogram, arena, ret, err)
                                         : GD_OK;
}

static void describe(const struct agent_value *value, struct gd_arena *arena,
                     Gradb__V1__TensorStats *ret)
{
    ret->dtype = (Gradb__V1__DataType)value->tensor.dtype;
    ret->step = value->step;
    size_t rank = (size_t)value->tensor.shape.rank;
    ret->shape = gd_arena_alloc(arena, (rank + 1) * sizeof(*ret->shape));
    for (size_t i = 0; ret->shape && i < rank; i++) {
        ret->shape[ret->n_shape++] = value->tensor.shape.dim[i];
    }
}

void agent_stats_fill(const struct agent *a, uint32_t node, uint32_t slot,
                      Gradb__V1__Iteration iteration, const Gradb__V1__StatsOptions *options,
                      struct gd_arena *arena, Gradb__V1__TensorStats *ret)
{
    uint64_t start = now_ns();
    char text[160];
    struct agent_value current, previous;
    gradb__v1__tensor_stats__init(ret);
    ret->node = node;
    ret->slot = slot;
    int code = agent_locate(a, node, slot, iteration, &current, text);
    if (code != -1) {
        fail(ret, arena, code, text);
        return;
    }
    describe(&current, arena, ret);
    bool against =
        options && options->against_previous &&
        agent_locate(a, node, slot, GRADB__V1__ITERATION__PREVIOUS, &previous, text) == -1 &&
        previous.tensor.dtype == current.tensor.dtype &&
        gd_shape_equal(&previous.tensor.shape, &current.tensor.shape);
    Gradb__V1__Stats *stats = gd_arena_alloc(arena, sizeof(*stats));
    Gradb__V1__Difference *difference = gd_arena_alloc(arena, sizeof(*difference));
    if (!stats || !difference) {
        fail(ret, arena, CODE(NO_MEMORY), "out of memory");
        return;
    }
    gradb__v1__stats__init(stats);
    stats->difference = against ? difference : NULL;
    struct gd_err err = {0};
    int status =
        compute(&current.tensor, against ? &previous.tensor : NULL, options, arena, stats, &err);
    if (status < 0) {
        fail(ret, arena, code_of(status), err.text);
        return;
    }
    ret->stats = stats;
    ret->cost_ns = now_ns() - start;
}
