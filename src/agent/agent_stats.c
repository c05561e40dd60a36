// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/agent_source.h"
#include "agent/agent_tensor.h"
#include "agent/agent_watch.h"
#include "base/workers.h"

#define MAX_BINS 4096

static bool same_number(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static bool same_bins(const Gradb__V1__Bins *a, const Gradb__V1__Bins *b)
{
    return a == b || (a && b && same_number(a->lo, b->lo) && same_number(a->hi, b->hi) &&
                      a->count == b->count && a->own == b->own);
}

bool agent_options_equal(const Gradb__V1__StatsOptions *a, const Gradb__V1__StatsOptions *b)
{
    static const Gradb__V1__StatsOptions none = GRADB__V1__STATS_OPTIONS__INIT;
    a = a ? a : &none;
    b = b ? b : &none;
    if (a->n_ranges != b->n_ranges || !same_number(a->rtol, b->rtol) ||
        !same_number(a->atol, b->atol) || a->against_previous != b->against_previous ||
        a->equal_nan != b->equal_nan || a->dead_steps != b->dead_steps ||
        !same_bins(a->histogram, b->histogram)) {
        return false;
    }
    for (size_t i = 0; i < a->n_ranges; i++) {
        if (!same_number(a->ranges[i]->lo, b->ranges[i]->lo) ||
            !same_number(a->ranges[i]->hi, b->ranges[i]->hi)) {
            return false;
        }
    }
    return true;
}

void gradb_use_openmp(gradb *g, const gradb_openmp *openmp)
{
    if (g && openmp && openmp->parallel && openmp->max_threads && openmp->in_parallel) {
        gd_workers_use_openmp(&(struct gd_openmp){.parallel = openmp->parallel,
                                                  .max_threads = openmp->max_threads,
                                                  .in_parallel = openmp->in_parallel});
    }
}

/* ---- computing ------------------------------------------------------------------------------ */

static int code_of(int status)
{
    switch (status) {
    case GD_EUNSUPPORTED: return CODE(UNSUPPORTED);
    case GD_ENOMEM: return CODE(NO_MEMORY);
    case GD_EINVAL: return CODE(INVALID);
    default: return CODE(FAILED);
    }
}

bool agent_bins_ok(const Gradb__V1__Bins *bins)
{
    return bins->count >= 1 && bins->count <= MAX_BINS && (bins->own || bins->lo <= bins->hi);
}

bool agent_bins_range(const Gradb__V1__Bins *bins, const struct gd_stats *stats, double *lo,
                      double *hi)
{
    *lo = bins->own ? stats->min : bins->lo;
    *hi = bins->own ? stats->max : bins->hi;
    return *lo <= *hi;
}

uint64_t *agent_look_bins(struct agent_look *look, const Gradb__V1__Bins *bins)
{
    return look->histogram ? look->histogram : bins->count <= AGENT_BINS ? look->bins : NULL;
}

/* Beside the statistics, so that it counts as their cost, and runs where they do. */
static void count_own_bins(const struct agent_value *value, const Gradb__V1__StatsOptions *options,
                           struct agent_look *ret)
{
    const Gradb__V1__Bins *bins = options ? options->histogram : NULL;
    double lo, hi;
    if (!bins || !bins->own || bins->count > AGENT_BINS || !agent_bins_ok(bins)) {
        return;
    }
    memset(ret->bins, 0, sizeof(ret->bins));
    ret->binned = !agent_bins_range(bins, &ret->stats, &lo, &hi) ||
                  gd_stats_histogram(&value->tensor, lo, hi, bins->count, ret->bins, NULL) == GD_OK;
}

/* Whether several threads compute its statistics. */
static bool is_shared(const struct agent *a, const struct gd_tensor *value)
{
    return a->threads > 1 &&
           gd_workers_pay((size_t)gd_shape_count(&value->shape) * gd_dtype_size(value->dtype));
}

void agent_stats_compute(const struct agent *a, const struct agent_value *cur,
                         const struct gd_tensor *prev, const Gradb__V1__StatsOptions *options,
                         struct agent_look *ret)
{
    struct gd_stats_options o;
    struct gd_err err;
    size_t ranges = options ? options->n_ranges : 0;
    if (ranges > GD_MAX_RANGES) {
        ret->code = CODE(INVALID);
        snprintf(ret->text, sizeof(ret->text), "%zu ranges: at most %d", ranges, GD_MAX_RANGES);
        return;
    }
    o.range_count = (int)ranges;
    for (size_t i = 0; i < ranges; i++) {
        o.range[i] = (struct gd_range){options->ranges[i]->lo, options->ranges[i]->hi};
    }
    o.rtol = options ? options->rtol : 0;
    o.atol = options ? options->atol : 0;
    o.equal_nan = options && options->equal_nan;
    o.threads = is_shared(a, &cur->tensor) ? a->threads : 1;
    o.go_on = NULL;
    prev = prev && gd_tensor_is_alike(&cur->tensor, prev) ? prev : NULL;
    int rc = gd_stats_compute(&cur->tensor, prev, &o, &ret->stats, &err);
    ret->code = -1;
    ret->binned = false;
    if (rc == GD_OK) {
        count_own_bins(cur, options, ret);
    } else {
        ret->code = code_of(rc);
        snprintf(ret->text, sizeof(ret->text), "%.*s", (int)sizeof(ret->text) - 1, err.text);
    }
}

bool agent_stats_all_finite(const struct agent *a, const struct gd_tensor *value)
{
    return !is_shared(a, value) && gd_stats_all_finite(value); /* else statistics are faster */
}

bool agent_stats_find(struct agent *a, uint32_t node, uint32_t slot, Gradb__V1__Iteration iteration,
                      const Gradb__V1__StatsOptions *options, struct agent_value *previous,
                      bool *against, struct agent_look *ret)
{
    *against = false;
    ret->remote = agent_asks(a, node, slot, iteration) &&
                  agent_source_stats(a, node, slot, iteration, options, ret) &&
                  ret->code != CODE(NO_VALUE); /* there may be a copy */
    if (ret->remote) {
        return false;
    }
    ret->code = agent_find(a, node, slot, iteration, &ret->value, ret->text);
    ret->located = ret->code == -1;
    char ignored[sizeof(ret->text)];
    *against = ret->located && options && options->against_previous &&
               agent_find(a, node, slot, GRADB__V1__ITERATION__PREVIOUS, previous, ignored) == -1;
    return ret->located;
}

void agent_stats_look(struct agent *a, uint32_t node, uint32_t slot, Gradb__V1__Iteration iteration,
                      const Gradb__V1__StatsOptions *options, struct agent_look *ret)
{
    struct agent_value previous;
    bool against;
    if (agent_stats_find(a, node, slot, iteration, options, &previous, &against, ret)) {
        agent_stats_compute(a, &ret->value, against ? &previous.tensor : NULL, options, ret);
    } else if (iteration == GRADB__V1__ITERATION__CURRENT &&
               (ret->code == CODE(NO_VALUE) || ret->code == CODE(GONE))) {
        agent_watch_recall(a, node, slot, options, ret);
    }
}

/* ---- reporting ------------------------------------------------------------------------------ */

static void copy_stats(struct gd_stats *from, Gradb__V1__Stats *to)
{
    gradb__v1__stats__init(to);
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
    to->in_range = from->in_range;
    to->n_in_range = (size_t)from->range_count;
    to->units = from->units;
    to->dead_units = from->dead_units;
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
    to->unpaired = from->unpaired;
    to->mean_delta = from->mean_delta;
    to->sum_sq_delta = from->sum_sq_delta;
}

static int compute_histogram(struct agent_look *look, const Gradb__V1__Bins *bins,
                             struct agent_stats_message *ret, struct gd_err *err)
{
    double lo, hi;
    if (!agent_bins_ok(bins)) {
        return gd_fail(err, GD_EINVAL, "a histogram has 1 to %d bins over a range", MAX_BINS);
    }
    ret->histogram = calloc(bins->count, sizeof(*ret->histogram));
    if (!ret->histogram) {
        return gd_fail_nomem(err);
    }
    ret->stats.histogram = ret->histogram;
    ret->stats.n_histogram = bins->count;
    if (look->remote) {
        memcpy(ret->histogram, agent_look_bins(look, bins), bins->count * sizeof(*ret->histogram));
        return GD_OK;
    }
    if (look->binned && bins->own) {
        memcpy(ret->histogram, look->bins, bins->count * sizeof(*ret->histogram));
        return GD_OK;
    }
    if (!agent_bins_range(bins, &look->stats, &lo, &hi)) {
        return GD_OK;
    }
    return gd_stats_histogram(&look->value.tensor, lo, hi, bins->count, ret->histogram, err);
}

void agent_stats_message(struct agent_look *look, const Gradb__V1__StatsOptions *options,
                         struct agent_stats_message *ret)
{
    Gradb__V1__TensorStats *value = &ret->value;
    struct gd_err err;
    ret->histogram = NULL;
    gradb__v1__tensor_stats__init(value);
    value->cost_ns = look->cost_ns;
    if (look->located) {
        value->dtype = (Gradb__V1__DataType)look->value.tensor.dtype;
        value->step = look->value.step;
        value->shape = look->value.tensor.shape.dim;
        value->n_shape = (size_t)look->value.tensor.shape.rank;
    }
    if (look->code == -1) {
        copy_stats(&look->stats, &ret->stats);
        value->stats = &ret->stats;
        if (look->stats.has_prev) {
            copy_difference(&look->stats, &ret->difference);
            ret->stats.difference = &ret->difference;
        }
        if (options && options->histogram) {
            int rc = compute_histogram(look, options->histogram, ret, &err);
            look->code = rc != GD_OK ? code_of(rc) : -1;
            snprintf(look->text, sizeof(look->text), "%.*s", (int)sizeof(look->text) - 1,
                     rc != GD_OK ? err.text : "");
        }
    }
    if (look->code != -1) {
        value->stats = NULL;
        value->error_code = (Gradb__V1__RequestError__Code)look->code;
        value->error = look->text;
    }
}

void agent_stats_message_free(struct agent_stats_message *message)
{
    free(message->histogram);
}
