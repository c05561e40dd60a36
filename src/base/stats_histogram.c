// SPDX-License-Identifier: MIT
#include <math.h>
#include <string.h>

#include "base/float_env.h"
#include "base/stats_impl.h"

#define WIDE   512 /* elements widened at a time */
#define TABLES 4
#define NARROW 256 /* up to this many bins use tables */

struct bins {
    double lo, hi, step, scale;
    double doubt; /* how near an edge, in bins, rounding can pick the wrong bin */
    int64_t count;
};

/* Edges, and the correction of rounding at them, as in numpy.histogram. */
static int64_t correct_bin(const struct bins *bins, double x, int64_t bin)
{
    if (bin > 0 && x < bins->lo + bins->step * (double)bin) {
        return bin - 1;
    }
    if (bin + 1 < bins->count && x >= bins->lo + bins->step * (double)(bin + 1)) {
        return bin + 1;
    }
    return bin;
}

/* The bin of each element; `count` for elements outside. */
static void find_bins(const double *x, size_t n, const struct bins *bins, int64_t *ret)
{
    for (size_t i = 0; i < n; i++) {
        bool inside = (x[i] >= bins->lo) & (x[i] <= bins->hi);
        double place = inside ? (x[i] - bins->lo) * bins->scale : 0;
        int64_t bin = (int64_t)place;
        double from_edge = place - (double)bin;

        bin = bin < bins->count ? bin : bins->count - 1;
        if (!(from_edge > bins->doubt && from_edge < 1 - bins->doubt)) {
            bin = correct_bin(bins, x[i], bin);
        }
        ret[i] = inside ? bin : bins->count;
    }
}

/* lo == hi: equal elements belong to the last bin. */
static void find_point(const double *x, size_t n, const struct bins *bins, int64_t *ret)
{
    for (size_t i = 0; i < n; i++) {
        ret[i] = x[i] == bins->lo ? bins->count - 1 : bins->count;
    }
}

/* Several tables take turns: equal elements in a row would wait for each other's increment. */
static void count_in_tables(const int64_t *bin, size_t n, uint64_t table[TABLES][NARROW + 1])
{
    for (size_t i = 0; i < n; i++) {
        table[i % TABLES][bin[i]]++;
    }
}

static __attribute__((noinline)) void fill(const struct gd_tensor *tensor, const struct bins *bins,
                                           double scale, uint64_t *ret)
{
    unsigned char scratch[GD_BLOCK_BYTES];
    uint64_t table[TABLES][NARROW + 1];
    int64_t count = gd_tensor_count(tensor), bin[WIDE];
    double x[WIDE], im[WIDE];
    struct gd_stats_source source;

    if (count <= 0) {
        return;
    }
    memset(table, 0, sizeof(table));
    gd_stats_source_init(&source, tensor, 0, scratch);
    for (int64_t at = 0; at < count; at += WIDE) {
        size_t n = (size_t)(count - at < WIDE ? count - at : WIDE);

        gd_stats_widen(tensor->dtype, gd_stats_source_take(&source, n), n, x, im);
        for (size_t i = 0; i < n && scale != 1; i++) {
            x[i] *= scale;
        }
        if (bins->lo < bins->hi) {
            find_bins(x, n, bins, bin);
        } else {
            find_point(x, n, bins, bin);
        }
        if (bins->count <= NARROW) {
            count_in_tables(bin, n, table);
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            if (bin[i] < bins->count) {
                ret[bin[i]]++;
            }
        }
    }
    for (int64_t b = 0; b < bins->count && bins->count <= NARROW; b++) {
        for (size_t t = 0; t < TABLES; t++) {
            ret[b] += table[t][b];
        }
    }
}

/* noinline: keeps the arithmetic between the two switches of the floating-point environment. */
static __attribute__((noinline)) void fill_bins(const struct gd_tensor *tensor, double lo,
                                                double hi, size_t bins, uint64_t *ret)
{
    /* hi - lo may exceed the largest double: compute with halves. In a range of denormals, bins per
     * unit would overflow: scale up. */
    bool narrow = lo < hi && hi - lo < 0x1p-900;
    double scale = !isfinite(hi - lo) ? 0.5 : narrow ? 0x1p600 : 1;
    struct bins b = {.lo = lo * scale, .hi = hi * scale, .count = (int64_t)bins};

    b.step = (b.hi - b.lo) / (double)bins;
    b.scale = (double)bins / (b.hi - b.lo);
    b.doubt = (double)bins * 0x1p-40;
    fill(tensor, &b, scale, ret);
}

int gd_stats_histogram(const struct gd_tensor *tensor, double lo, double hi, size_t bins,
                       uint64_t *ret, struct gd_err *err)
{
    if (!gd_stats_kind(tensor->dtype)) {
        return gd_fail(err, GD_EUNSUPPORTED, "cannot compute statistics of a %s tensor",
                       gd_dtype_name(tensor->dtype));
    }
    if (bins == 0 || !isfinite(lo) || !isfinite(hi) || lo > hi) {
        return gd_fail(err, GD_EINVAL,
                       "a histogram needs at least one bin and finite limits in ascending order");
    }
    memset(ret, 0, bins * sizeof(*ret));
    gd_float_env environment = gd_float_env_enter();
    fill_bins(tensor, lo, hi, bins, ret);
    gd_float_env_leave(environment);
    return GD_OK;
}
