// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The figures that conditions and expressions speak of, by name: what gd_stats holds, what follows
 * from it, and what is known of the value's past. One table; a figure that cannot be had says why.
 */
#ifndef GD_ENGINE_STATISTIC_H
#define GD_ENGINE_STATISTIC_H

#include "base/stats.h"

enum gd_statistic {
    GD_STAT_NONE = 0,
    /* counts of elements */
    GD_STAT_COUNT,
    GD_STAT_NAN,
    GD_STAT_INF, /* both signs */
    GD_STAT_POS_INF,
    GD_STAT_NEG_INF,
    GD_STAT_NONFINITE, /* NaN and Inf */
    GD_STAT_ZERO,
    GD_STAT_NEG_ZERO,
    GD_STAT_POSITIVE,
    GD_STAT_NEGATIVE,
    GD_STAT_DENORMAL,
    /* of the values: not known of a tensor that holds NaN or Inf, or nothing */
    GD_STAT_MIN,
    GD_STAT_MAX,
    GD_STAT_SPREAD,  /* max - min */
    GD_STAT_MAX_ABS, /* the larger of |min| and |max| */
    GD_STAT_MEAN,
    GD_STAT_ABS_MEAN,
    GD_STAT_STD,
    GD_STAT_SUM_SQ,
    GD_STAT_NORM, /* sqrt(sum_sq) */
    /* percentages, 0 ... 100; of an empty tensor 0. Not known of a tensor that holds NaN or Inf;
     * those that say otherwise below */
    GD_STAT_ZERO_PERCENTAGE,
    GD_STAT_DENORMAL_PERCENTAGE,
    GD_STAT_RANGE_PERCENTAGE, /* inside the watchpoint's range */
    GD_STAT_CLIP_PERCENTAGE,  /* outside the watchpoint's range; Inf is outside, NaN neither */
    GD_STAT_DEAD_PERCENTAGE,  /* dead units, see gd_units; NaN is not 0 */
    /* Against the value of the step before, over the positions where both are finite. All but
     * mismatch and unpaired are not known of a tensor that holds NaN or Inf, now or in the step
     * before, or nothing. */
    GD_STAT_DELTA_ABS_MEAN, /* mean |cur - prev| */
    GD_STAT_DELTA_MAX_ABS,
    GD_STAT_DELTA_MEAN,
    GD_STAT_DELTA_NORM,
    GD_STAT_PREV_ABS_MEAN,
    GD_STAT_PREV_NORM,
    GD_STAT_UPDATE_RATIO, /* mean |cur - prev| / (mean |prev| + 1e-9) */
    GD_STAT_COSINE,       /* of the angle between cur and prev; not known when either is 0 */
    GD_STAT_MISMATCH,     /* elements that are not close at the watchpoint's rtol and atol */
    GD_STAT_UNPAIRED,     /* elements that are not finite now or were not in the step before */
    /* Against the values of many steps before: gd_series. Not known before GD_SERIES_WARMUP of
     * them, nor of a tensor that holds NaN or Inf, or nothing. Bounded by GD_FIGURE_MAX. */
    GD_STAT_Z_SCORE,    /* (abs_mean - its running mean) / its running deviation */
    GD_STAT_NORM_RATIO, /* norm / its running mean; 1 when both are 0 */
    /* mean / its running mean (a loss), or its running deviation where that is larger; not known
     * when the running mean is not above 0 */
    GD_STAT_MEAN_RATIO,
    GD_STAT_MEAN_Z_SCORE, /* (mean - its running mean) / its running deviation (a loss) */
    GD_STAT_STALL,        /* steps since the lowest mean so far (a loss); 0: this one is it */
    /* The lowest of the last 3 means over the highest of those before the last GD_SERIES_RECENT and
     * of the first one: known from the third on, of means that were all above 0. */
    GD_STAT_RISE,
    /* Steps since the value was computed; 0: in this step. Known also of a value that is not there,
     * when it is known which step computed the last one. */
    GD_STAT_AGE,
    GD_STAT_TOTAL,
};

/* Bits of what must be there to compute a figure. */
enum gd_stat_need {
    GD_NEED_FINITE = 1 << 0,   /* some of: no NaN, no Inf, not empty */
    GD_NEED_PREVIOUS = 1 << 1, /* the value of the step before */
    GD_NEED_RANGE = 1 << 2,
    GD_NEED_SERIES = 1 << 3,
    GD_NEED_UNITS = 1 << 4,
    GD_NEED_TOLERANCE = 1 << 5,
};
unsigned gd_statistic_needs(enum gd_statistic statistic);
/* "abs_mean"; for those against the step before the way expressions write them:
 * "abs_mean(cur-prev)". */
const char *gd_statistic_name(enum gd_statistic statistic);
const char *gd_statistic_text(enum gd_statistic statistic); /* what it is, a phrase */
/* By what an expression writes: the name alone (`of` NULL, "" or "cur") or of "prev" or "cur-prev".
 * MindInsight's names are known, too: max_min, abs_mean_update_ratio. GD_STAT_NONE: there is none.
 */
enum gd_statistic gd_statistic_find(const char *name, const char *of);

/* The past of one watched value: running means of abs_mean, of the norm and of the mean over about
 * the last GD_SERIES_WINDOW steps (exponentially weighted; a plain mean as long as there are
 * fewer), the variances of abs_mean and mean, the lowest mean. Zero is a new one. */
#define GD_SERIES_RECENT 10
struct gd_series {
    uint32_t seen; /* values taken in */
    int64_t last_step;
    double abs_mean, abs_mean_var;
    double mean, mean_var;
    double norm;
    double best_mean; /* the last that was lower than all before by GD_SERIES_BETTER of itself */
    int64_t best_step;
    double recent[GD_SERIES_RECENT]; /* the last means; that of value i at i % GD_SERIES_RECENT */
    double height; /* the highest mean before those, or the first; infinite: one was 0 or less */
    double crest;  /* the highest mean, which sinks to the running one in GD_SERIES_SINKS steps */
};
#define GD_SERIES_WINDOW 20   /* steps */
#define GD_SERIES_WARMUP 10   /* values before anything is compared with them */
#define GD_SERIES_FLOOR  1e-3 /* least deviation, as a share of the running mean */
#define GD_SERIES_SUNK   0.05 /* the same of mean, as a share of how far it is below the crest */
#define GD_SERIES_SINKS  200
#define GD_SERIES_REACH  10
#define GD_SERIES_BETTER 1e-4
#define GD_FIGURE_MAX    1e9
/* Takes a value in, after it was judged, also one that fired: a new level becomes the normal one in
 * about a window. Warmed up, what is further than GD_SERIES_REACH deviations away (of the norm:
 * GD_SERIES_REACH times its running mean) is taken in as if it were just so far, so that one spike
 * does not hide the next. A second one of the same step is left out, as is one that is empty or not
 * finite. */
void gd_series_add(struct gd_series *series, const struct gd_stats *stats, int64_t step);

/* What is known of one value at one moment. */
struct gd_observation {
    const struct gd_stats *stats; /* NULL: there is none, `error` says why */
    unsigned error;      /* bits of enum gd_hit_error; beside stats: why there is no value before */
    enum gd_dtype dtype; /* GD_DT_NONE: not known */
    int range;           /* which of stats->in_range is the watchpoint's; -1 none */
    int64_t step;        /* in which it is judged */
    int64_t value_step;  /* that computed it; -1 unknown (then it counts as of this step) */
    const struct gd_series *series; /* before this value; NULL: none is kept */
    /* named numbers of the session for expressions ("loss", "lr", "step"): true when known */
    bool (*scalar)(void *ctx, const char *name, double *ret);
    void *scalar_ctx;
};

/* Why nothing, or no figure of the values, can be had: NaN, Inf, empty; without stats the reason
 * for that. 0: there is no such reason. */
unsigned gd_statistic_errors(const struct gd_observation *seen);
/* Of statistics that somebody else wrote down: elements that are NaN or infinite, so many at least,
 * where the exact count is not known. false: nothing proves that there are any. */
bool gd_statistic_at_least(enum gd_statistic statistic, const struct gd_observation *seen,
                           double *ret);
/* The figure; on failure *error gets bits of enum gd_hit_error and false is returned. */
bool gd_statistic_value(enum gd_statistic statistic, const struct gd_observation *seen, double *ret,
                        unsigned *error);

#endif
