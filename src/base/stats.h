// SPDX-License-Identifier: MIT
/*
 * Statistics of a tensor in one pass over its memory: all that conditions, printers and watch plans
 * need. Runs in the debugger and, in libgradb, in the training process.
 *
 * - max, min, mean, abs_mean and sum_sq are over finite elements; counts are over all.
 * - A complex element counts as its magnitude: NaN when either part is, else +Inf when either part
 *   is infinite.
 * - Sums are double and lossless across blocks: 1e8 elements agree with a float64 reference to 1e-6
 *   relative. A sum beyond the largest double is infinite, and so is what is derived from it.
 * - Results do not depend on the number of threads, nor on the floating-point environment of the
 *   calling thread (traps, rounding, denormals), which is preserved.
 */
#ifndef GD_BASE_STATS_H
#define GD_BASE_STATS_H

#include "base/tensor.h"

#define GD_MAX_RANGES 16

struct gd_range { /* both ends inclusive */
    double lo, hi;
};

struct gd_stats {
    uint64_t count;
    uint64_t nan;
    uint64_t pos_inf;
    uint64_t neg_inf;
    uint64_t zero;     /* +0 and -0 */
    uint64_t neg_zero; /* -0 alone */
    uint64_t positive; /* finite and > 0 */
    uint64_t negative; /* finite and < 0 */
    uint64_t denormal;
    double min;      /* of finite elements; +Inf when there are none */
    double max;      /* -Inf when there are none */
    double mean;     /* 0 when there are no finite elements; so are the next three */
    double abs_mean; /* mean of |x| */
    double sum_sq;   /* sum of x*x */
    double std;      /* population standard deviation */
    int range_count; /* as in the options */
    uint64_t in_range[GD_MAX_RANGES]; /* elements in each range */
    /* Against a second tensor of the same shape (has_prev). All but mismatch are over the positions
     * where both are finite. For complex elements |cur - prev| is the magnitude of the difference,
     * and dot is Re(a conj b). */
    bool has_prev;
    double mean_abs_delta; /* mean |cur - prev| */
    double mean_delta;     /* mean (cur - prev); complex: of the magnitudes */
    double sum_sq_delta;   /* sum |cur - prev|^2 */
    double max_abs_delta;
    double mean_abs_prev;
    double dot; /* sum cur * prev */
    double sum_sq_prev;
    uint64_t unpaired; /* positions skipped: either element is NaN or infinite */
    /* Elements with |cur - prev| > atol + rtol * |prev|. Equal infinities match; NaN matches only
     * NaN, with equal_nan. */
    uint64_t mismatch;
    /* Of gd_units; 0 when not computed. */
    uint64_t units, dead_units;
    /* Bits of enum gd_unknown: statistics that were not computed. 0 after gd_stats_compute;
     * statistics read from files may lack some. nan, pos_inf and neg_inf with their bit set are
     * lower bounds. */
    unsigned unknown;
};

enum gd_unknown {
    GD_UNKNOWN_COUNT = 1 << 0,
    GD_UNKNOWN_MAX = 1 << 1,
    GD_UNKNOWN_MIN = 1 << 2,
    GD_UNKNOWN_MEAN = 1 << 3,
    GD_UNKNOWN_NAN = 1 << 4,
    GD_UNKNOWN_INF = 1 << 5,
    GD_UNKNOWN_ZERO = 1 << 6,
    GD_UNKNOWN_SIGNS = 1 << 7,  /* positive, negative */
    GD_UNKNOWN_SUM_SQ = 1 << 8, /* the norm */
    GD_UNKNOWN_REST = 1 << 9,   /* abs_mean, std, denormal, neg_zero */
    GD_UNKNOWN_UNITS = 1 << 10, /* dead units */
    GD_UNKNOWN_ALL = (1 << 11) - 1,
};

struct gd_stats_options {
    int range_count; /* 0 ... GD_MAX_RANGES */
    struct gd_range range[GD_MAX_RANGES];
    double rtol, atol;
    bool equal_nan;
    int threads; /* threads for a big tensor; 0 and 1: only the caller's */
    /* Called from the calling thread now and then, with the number of elements done; returns false
     * to stop the work (GD_EINTR). May be NULL. */
    bool (*go_on)(void *ctx, uint64_t done);
    void *go_on_ctx;
};

/* Computes the statistics of `cur`, against `prev` if not NULL. options may be NULL. Returns
 * GD_EINVAL (dtypes or shapes differ, more than GD_MAX_RANGES) or GD_EUNSUPPORTED (not a numeric
 * dtype). */
int gd_stats_compute(const struct gd_tensor *cur, const struct gd_tensor *prev,
                     const struct gd_stats_options *options, struct gd_stats *ret,
                     struct gd_err *err);

/* Derives counts from statistics that another program wrote: a NaN statistic proves a NaN element
 * (a mean also +Inf with -Inf), an infinite extreme proves an infinite element. That count is
 * raised to 1. 0 means "not given"; max -Inf with min +Inf (no finite element) proves nothing.
 * Returns true when counts of `ret` are now lower bounds. */
bool gd_stats_prove(double max, double min, double mean, double norm, struct gd_stats *ret);

/* Whether all elements are finite; cheaper than the statistics. false may also mean unknown:
 * complex numbers, elements far apart. */
bool gd_stats_all_finite(const struct gd_tensor *tensor);

/* Reads `count` elements from number `first` on into `out`. Called by several threads at once, for
 * pieces that do not overlap. */
typedef int (*gd_stats_read_fn)(void *ctx, int64_t first, int64_t count, void *out,
                                struct gd_err *err);
struct gd_stats_reader {
    gd_stats_read_fn read;
    void *ctx;
};

/* gd_stats_compute for `count` contiguous elements from a reader, in a fixed amount of memory; prev
 * may be NULL. An error of a reader is returned: that of the earliest elements if several fail. */
int gd_stats_compute_read(enum gd_dtype dtype, int64_t count, const struct gd_stats_reader *cur,
                          const struct gd_stats_reader *prev,
                          const struct gd_stats_options *options, struct gd_stats *ret,
                          struct gd_err *err);

/* A histogram of the finite elements: `bins` (>= 1) equal bins of [lo, hi], the last one closed.
 * Elements outside are not counted. */
int gd_stats_histogram(const struct gd_tensor *tensor, double lo, double hi, size_t bins,
                       uint64_t *ret, struct gd_err *err);

#endif
