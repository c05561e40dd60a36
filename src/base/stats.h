// SPDX-License-Identifier: MIT
/*
 * Statistics of a tensor in one pass over its memory: everything that a condition, a printer or a
 * watch plan asks for. Runs in the debugger and, linked into libgradb, in the training process.
 *
 * max, min, mean, abs_mean and sum_sq are over finite elements; counts are over all. A complex
 * element is its magnitude, in sums and counts: NaN when either part is, else +Inf when either part
 * is infinite. Accumulation is in double, by blocks that are joined without loss, so that 1e8
 * elements agree with a float64 reference to 1e-6 relative; a sum beyond the largest double is
 * infinite, and so is then what is made of it. Results do not depend on the number of threads.
 * Whatever the calling thread has set up (traps, rounding, denormals as zero) neither matters nor
 * is changed.
 */
#ifndef GD_BASE_STATS_H
#define GD_BASE_STATS_H

#include "base/tensor.h"

#define GD_MAX_RANGES 16

struct gd_range { /* both ends inside */
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
    double min;                       /* over finite elements; +inf when there is none */
    double max;                       /* -inf when there is none */
    double mean;                      /* 0 when there is no finite element, as the three below */
    double abs_mean;                  /* mean of |x| */
    double sum_sq;                    /* sum of x*x */
    double std;                       /* population standard deviation */
    int range_count;                  /* as asked for */
    uint64_t in_range[GD_MAX_RANGES]; /* elements inside each */
    /* Against a second tensor of the same shape (has_prev). All but mismatch are over the positions
     * where both are finite; |cur - prev| and dot of complex elements are the true ones, Re(a conj
     * b) for dot. */
    bool has_prev;
    double mean_abs_delta; /* mean |cur - prev| */
    double mean_delta;     /* mean (cur - prev); of complex elements that of their magnitudes */
    double sum_sq_delta;   /* sum |cur - prev|^2 */
    double max_abs_delta;
    double mean_abs_prev;
    double dot; /* sum cur * prev */
    double sum_sq_prev;
    uint64_t unpaired; /* positions left out of these: either element is NaN or infinite */
    /* elements with |cur - prev| > atol + rtol * |prev|; equal infinities match; NaN does not, but
     * with equal_nan two NaN do */
    uint64_t mismatch;
    /* Of gd_units, where it was asked for; else 0. */
    uint64_t units, dead_units;
    /* Bits of enum gd_unknown: figures that nobody has computed. 0 of what gd_stats_compute gives;
     * statistics that somebody wrote down have fewer. nan, pos_inf and neg_inf of which the bit is
     * set are lower bounds: 0 where nothing is known, else so many at least. */
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
    int threads; /* that may share the work of a big tensor; 0 and 1: the caller's alone */
    /* Called again and again while a big tensor is worked on, by the calling thread, with the
     * number of elements that are done; false stops the work: GD_EINTR. NULL: nobody asks. */
    bool (*go_on)(void *ctx, uint64_t done);
    void *go_on_ctx;
};

/* Statistics of `cur`, against `prev` when it is not NULL (same dtype and shape: GD_EINVAL
 * otherwise, and with more than GD_MAX_RANGES). options may be NULL. GD_EUNSUPPORTED: the dtype has
 * no numbers. */
int gd_stats_compute(const struct gd_tensor *cur, const struct gd_tensor *prev,
                     const struct gd_stats_options *options, struct gd_stats *ret,
                     struct gd_err *err);

/* What figures that somebody else wrote down prove: one that is NaN comes of a NaN element (a mean
 * also of +Inf with -Inf), an extreme that is infinite is an element. A count that does not say so
 * becomes "at least 1". 0 stands for a figure that was not told; extremes of no finite element, max
 * -Inf and min +Inf, prove nothing. true: the counts of `ret` are lower bounds now. */
bool gd_stats_prove(double max, double min, double mean, double norm, struct gd_stats *ret);

/* Whether no element is NaN or infinite, at less cost than the statistics. false may also mean that
 * this is not known: of complex numbers, and where elements lie too far apart. */
bool gd_stats_all_finite(const struct gd_tensor *tensor);

/* Elements that are not in memory: `count` of them from number `first` on, to out. Called by
 * several threads at once, for pieces that do not overlap. */
typedef int (*gd_stats_read_fn)(void *ctx, int64_t first, int64_t count, void *out,
                                struct gd_err *err);
struct gd_stats_reader {
    gd_stats_read_fn read;
    void *ctx;
};

/* gd_stats_compute of `count` elements that lie one after another, in memory that does not grow
 * with them; prev may be NULL. An error of a reader ends it and is returned: that of the earliest
 * elements, when several fail. */
int gd_stats_compute_read(enum gd_dtype dtype, int64_t count, const struct gd_stats_reader *cur,
                          const struct gd_stats_reader *prev,
                          const struct gd_stats_options *options, struct gd_stats *ret,
                          struct gd_err *err);

/* A histogram of the finite elements over `bins` equal bins of [lo, hi]; the last bin is closed.
 * Elements outside are not counted. bins >= 1. */
int gd_stats_histogram(const struct gd_tensor *tensor, double lo, double hi, size_t bins,
                       uint64_t *ret, struct gd_err *err);

#endif
