// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * How much two tensors differ: one set of metrics, and a verdict from it.
 *
 * B is the reference, A the other. Metrics are over the elements that are finite on both sides;
 * elements that are the same non-finite value on both are counted, and so are those that are not,
 * so that one NaN never blanks a row. Integers and bools are compared exactly; complex elements by
 * the magnitude of the difference. Accumulation is in double.
 *
 * The numbers are those of numpy.isclose, numpy.linalg and the formulas written at each field.
 */
#ifndef GD_COMPARE_COMPARE_H
#define GD_COMPARE_COMPARE_H

#include "dump/io/source.h"

enum gd_agreement {
    GD_V_SAME, /* every value equal (NaN equals NaN) */
    GD_V_PASS, /* all close */
    GD_V_WARN, /* 99.9 % close and rel_l2 <= 10 rtol */
    GD_V_FAIL,
    GD_V_NONFINITE, /* NaN or infinity on one side only, or of another kind */
    GD_V_SHAPE,
    GD_V_MISSING_A,
    GD_V_MISSING_B,
    GD_V_UNREADABLE,
    GD_V_STAT_OK, /* only statistics on a side, and they agree */
    GD_V_DIFF,    /* only checksums on a side, and they differ */
    GD_V_COUNT
};
const char *gd_verdict_name(enum gd_agreement verdict); /* "SAME", "STAT-OK", ... */
bool gd_verdict_is_bad(enum gd_agreement verdict); /* FAIL, NONFINITE, SHAPE, UNREADABLE, DIFF */

struct gd_tolerance {
    double rtol, atol; /* |a - b| <= atol + rtol |b| is close */
};
enum gd_profile { GD_PROFILE_CROSS, GD_PROFILE_STRICT, GD_PROFILE_NUMPY, GD_PROFILE_COUNT };
const char *gd_profile_name(enum gd_profile profile);
/* By name; GD_PROFILE_COUNT: none. */
enum gd_profile gd_profile_from_name(const char *name);
/* Of the looser of two types: cross: two frameworks or devices; strict: torch.testing's table;
 * numpy: 1e-5, 1e-8. */
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
    uint64_t mismatch;       /* a non-finite element against anything else */
    uint64_t equal;          /* value equal, with same_nonfinite */
    uint64_t close;          /* finite on both sides and close */
    double max_abs;          /* max |a-b| */
    int64_t max_abs_at;      /* -1 none */
    double mean_abs;
    double rel_l2;   /* ||a-b|| / ||b||; 0 when both are 0, inf when only b is */
    double max_rel;  /* max |a-b|/|b| over |b| > small(dtype) */
    double r1k, r5k; /* share of the finite pairs with |a-b| < 0.001 |b|, 0.005 |b|, or a = b */
    double cosine;   /* NaN: one side is all 0 */
    uint64_t ulp[GD_ULP_BUCKETS]; /* elements that are equal; then those as many units of the last
                                     place apart as have 1, 2, 3, ... bits */
    double ulp99; /* 99 % are within so many units of the last place of the coarser type, as
                     2^k - 1; NaN: not floats */
    struct gd_stats a, b;
    struct gd_worst worst[GD_WORST]; /* mismatches, then by |a-b| / (atol + rtol |b|) */
    int worst_count;
};

struct gd_difference {
    enum gd_agreement verdict;
    bool has_metrics;
    struct gd_metrics metrics;
    struct gd_tolerance tolerance; /* that judged */
    bool squeezed;                 /* unit dimensions were dropped to make the shapes equal */
    char note[160]; /* "": dtypes differ, a layout, what was assumed, why UNREADABLE */
};

struct gd_compare_options {
    enum gd_profile profile;
    bool has_tolerance;
    struct gd_tolerance tolerance;
    int threads; /* that may share the work of a big tensor; 0 and 1: the caller's alone */
    /* Asked again and again by the calling thread, with the elements that are done. */
    bool (*go_on)(void *ctx, uint64_t done);
    void *go_on_ctx;
};

/* Of tensors without elements: nothing was compared. */
bool gd_difference_is_empty(const struct gd_difference *difference);
/* close% for a table: (close + same_nonfinite) / count; 1 when there is nothing. */
double gd_metrics_close(const struct gd_metrics *metrics);

/* Both are read in blocks; memory does not grow with them. What cannot be read is a verdict, not an
 * error; GD_EINTR, GD_ENOMEM are errors. */
int gd_compare_sources(struct gd_source *a, struct gd_source *b,
                       const struct gd_compare_options *options, struct gd_difference *ret,
                       struct gd_err *err);

/* Of statistics alone, of those figures that both know (gd_stats.unknown): l2, max and min relative
 * to B's, mean to the larger of B's ends. STAT_OK, WARN (within 5 %), FAIL, NONFINITE, SHAPE;
 * UNREADABLE: they have no figure in common. */
enum gd_agreement gd_compare_stats(const struct gd_stats *a, const struct gd_stats *b,
                                   struct gd_tolerance tolerance);

#endif
