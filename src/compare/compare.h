// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * How much two tensors differ: one set of metrics, and a verdict based on it.
 *
 * B is the reference, A the other tensor. Metrics cover the elements that are finite on both sides;
 * non-finite elements are counted, separately if both sides have the same value, so that one NaN
 * never blanks a row. Integers and bools are compared exactly, complex elements by the magnitude of
 * the difference. Sums are in double precision.
 *
 * The numbers match numpy.isclose, numpy.linalg and the formulas given at each field.
 */
#ifndef GD_COMPARE_COMPARE_H
#define GD_COMPARE_COMPARE_H

#include "dump/io/source.h"

enum gd_agreement {
    GD_V_SAME, /* all values equal (NaN equals NaN) */
    GD_V_PASS, /* all close */
    GD_V_WARN, /* 99.9 % close and rel_l2 <= 10 rtol */
    GD_V_FAIL,
    GD_V_NONFINITE, /* NaN or infinity on one side only, or of different kind */
    GD_V_SHAPE,
    GD_V_MISSING_A,
    GD_V_MISSING_B,
    GD_V_UNREADABLE,
    GD_V_STAT_OK, /* a side only has statistics, and they agree */
    GD_V_DIFF,    /* a side only has checksums, and they differ */
    GD_V_COUNT
};
const char *gd_verdict_name(enum gd_agreement verdict); /* "SAME", "STAT-OK", ... */
bool gd_verdict_is_bad(enum gd_agreement verdict); /* FAIL, NONFINITE, SHAPE, UNREADABLE, DIFF */

struct gd_tolerance {
    double rtol, atol; /* |a - b| <= atol + rtol |b| is close */
};
enum gd_profile { GD_PROFILE_CROSS, GD_PROFILE_STRICT, GD_PROFILE_NUMPY, GD_PROFILE_COUNT };
/* GD_PROFILE_COUNT: unknown. */
enum gd_profile gd_profile_from_name(const char *name);
/* For the less precise of two types. cross: two frameworks or devices; strict: torch.testing's
 * table; numpy: 1e-5, 1e-8. */
struct gd_tolerance gd_profile_tolerance(enum gd_profile profile, enum gd_stored a,
                                         enum gd_stored b);

#define GD_WORST       10
#define GD_ULP_BUCKETS 65
struct gd_worst {
    int64_t at; /* element of A, in C order */
    double a, b;
};

struct gd_metrics {
    uint64_t count;          /* elements */
    uint64_t same_nonfinite; /* NaN/NaN, +Inf/+Inf, -Inf/-Inf */
    uint64_t mismatch;       /* non-finite against anything else */
    uint64_t equal;          /* equal values, including same_nonfinite */
    uint64_t close;          /* finite on both sides and close */
    double max_abs;          /* max |a-b| */
    int64_t max_abs_at;      /* -1: none */
    double mean_abs;
    /* ||a-b|| / ||b||; 0 if both are 0, inf if only b is */
    double rel_l2;
    double max_rel;  /* max |a-b|/|b| over |b| > small(dtype) */
    double r1k, r5k; /* fraction of the finite pairs with |a-b| < 0.001 |b|, 0.005 |b|, or a = b */
    double cosine;   /* NaN: one side is all 0 */
    /* [0]: equal elements; [k]: those whose distance in units of the last place has k bits */
    uint64_t ulp[GD_ULP_BUCKETS];
    /* 99 % are within this many units of the last place of the coarser type, as 2^k - 1; NaN: not
     * floats */
    double ulp99;
    struct gd_stats a, b;
    struct gd_worst worst[GD_WORST]; /* mismatches, then by |a-b| / (atol + rtol |b|) */
    int worst_count;
};

struct gd_difference {
    enum gd_agreement verdict;
    bool has_metrics;
    struct gd_metrics metrics;
    struct gd_tolerance tolerance; /* used for the verdict */
    bool squeezed;                 /* dimensions of size 1 were dropped to make the shapes equal */
    char note[160]; /* "" or: different dtypes, a layout, an assumption, why UNREADABLE */
};

struct gd_compare_options {
    enum gd_profile profile;
    bool has_tolerance;
    struct gd_tolerance tolerance;
    int threads; /* threads that may share the work on a big tensor; 0 and 1: only the caller's */
    /* Called repeatedly by the calling thread with the number of elements done. */
    bool (*go_on)(void *ctx, uint64_t done);
    void *go_on_ctx;
};

/* The tensors have no elements: nothing was compared. */
bool gd_difference_is_empty(const struct gd_difference *difference);
/* close% for a table: (close + same_nonfinite) / count; 1 if there are no elements. */
double gd_metrics_close(const struct gd_metrics *metrics);

/* Reads both in blocks, in bounded memory. Unreadable data is a verdict, not an error; errors:
 * GD_EINTR, GD_ENOMEM. */
int gd_compare_sources(struct gd_source *a, struct gd_source *b,
                       const struct gd_compare_options *options, struct gd_difference *ret,
                       struct gd_err *err);

/* Compares statistics that both sides know (gd_stats.unknown): l2, max and min relative to B's,
 * mean relative to the larger of B's extremes. STAT_OK, WARN (within 5 %), FAIL, NONFINITE, SHAPE;
 * UNREADABLE: no statistic in common. */
enum gd_agreement gd_compare_stats(const struct gd_stats *a, const struct gd_stats *b,
                                   struct gd_tolerance tolerance);

#endif
