// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The statistics that conditions and expressions use, by name: those in gd_stats, those derived
 * from them, and those of the value's past. One table; a statistic that is unavailable says why.
 */
#ifndef GD_ENGINE_STATISTIC_H
#define GD_ENGINE_STATISTIC_H

#include "base/stats.h"

enum gd_statistic {
    GD_STAT_NONE = 0,
    /* element counts */
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
    /* of the values: unknown for a tensor that has NaN or Inf, or no elements */
    GD_STAT_MIN,
    GD_STAT_MAX,
    GD_STAT_SPREAD,  /* max - min */
    GD_STAT_MAX_ABS, /* the larger of |min| and |max| */
    GD_STAT_MEAN,
    GD_STAT_ABS_MEAN,
    GD_STAT_STD,
    GD_STAT_SUM_SQ,
    GD_STAT_NORM, /* sqrt(sum_sq) */
    /* percentages, 0 to 100; 0 for an empty tensor. Unknown for a tensor with NaN or Inf, except as
     * noted */
    GD_STAT_ZERO_PERCENTAGE,
    GD_STAT_DENORMAL_PERCENTAGE,
    GD_STAT_RANGE_PERCENTAGE, /* inside the watchpoint's range */
    /* outside the watchpoint's range; Inf counts as outside, NaN does not */
    GD_STAT_CLIP_PERCENTAGE,
    GD_STAT_DEAD_PERCENTAGE, /* dead units, see gd_units; NaN is not 0 */
    /* Compared with the previous step's value, over the positions where both are finite. All but
     * mismatch and unpaired are unknown for a tensor that has NaN or Inf, now or in the previous
     * step, or no elements. */
    GD_STAT_DELTA_ABS_MEAN, /* mean |cur - prev| */
    GD_STAT_DELTA_MAX_ABS,
    GD_STAT_DELTA_MEAN,
    GD_STAT_DELTA_NORM,
    GD_STAT_PREV_ABS_MEAN,
    GD_STAT_PREV_NORM,
    GD_STAT_UPDATE_RATIO, /* mean |cur - prev| / (mean |prev| + 1e-9) */
    GD_STAT_COSINE,       /* of the angle between cur and prev; unknown if either is 0 */
    GD_STAT_MISMATCH,     /* elements that are not close at the watchpoint's rtol and atol */
    GD_STAT_UNPAIRED,     /* elements that are not finite now or were not in the previous step */
    /* Compared with the values of many previous steps: gd_series. Unknown before GD_SERIES_WARMUP
     * of them, and for a tensor that has NaN or Inf, or no elements. Bounded by GD_FIGURE_MAX. */
    GD_STAT_Z_SCORE,    /* (abs_mean - its running mean) / its running deviation */
    GD_STAT_NORM_RATIO, /* norm / its running mean; 1 when both are 0 */
    /* mean / its running mean (a loss), or / its running deviation if that is larger; unknown
     * unless the running mean is above 0 */
    GD_STAT_MEAN_RATIO,
    GD_STAT_MEAN_Z_SCORE, /* (mean - its running mean) / its running deviation (a loss) */
    GD_STAT_STALL,        /* steps since the lowest mean so far (a loss); 0: this is the lowest */
    /* The lowest of the last 3 means over the highest of those before the last GD_SERIES_RECENT and
     * of the first one: known from the third value on, if all means were above 0. */
    GD_STAT_RISE,
    /* Steps since the value was computed; 0: in this step. Also known for a missing value if the
     * step that computed the last one is known. */
    GD_STAT_AGE,
    GD_STAT_TOTAL,
};

/* What is needed to compute a statistic, as bits. */
enum gd_stat_need {
    GD_NEED_FINITE = 1 << 0,   /* some of: no NaN, no Inf, not empty */
    GD_NEED_PREVIOUS = 1 << 1, /* the previous step's value */
    GD_NEED_RANGE = 1 << 2,
    GD_NEED_SERIES = 1 << 3,
    GD_NEED_UNITS = 1 << 4,
    GD_NEED_TOLERANCE = 1 << 5,
    GD_NEED_BINS = 1 << 6, /* a histogram, for the history */
    /* any of these: more than the value */
    GD_NEED_MORE = GD_NEED_PREVIOUS | GD_NEED_RANGE | GD_NEED_SERIES | GD_NEED_UNITS,
};
unsigned gd_statistic_needs(enum gd_statistic statistic);
/* "abs_mean"; those compared with the previous step as expressions write them:
 * "abs_mean(cur-prev)". */
const char *gd_statistic_name(enum gd_statistic statistic);
const char *gd_statistic_text(enum gd_statistic statistic); /* a short description */
/* By what an expression writes: the name alone (`of` NULL, "" or "cur") or with "prev" or
 * "cur-prev". Knows MindInsight's names, too: max_min, abs_mean_update_ratio. GD_STAT_NONE: not
 * found. */
enum gd_statistic gd_statistic_find(const char *name, const char *of);

/* The past of one watched value: running means of abs_mean, norm and mean over about the last
 * GD_SERIES_WINDOW steps (exponentially weighted; a plain mean while there are fewer), the
 * variances of abs_mean and mean, the lowest mean. A new one is all zero. */
#define GD_SERIES_RECENT 10
struct gd_series {
    uint32_t seen; /* number of values */
    int64_t last_step;
    double abs_mean, abs_mean_var;
    double mean, mean_var;
    double norm;
    /* the last that was lower than all previous ones by GD_SERIES_BETTER of itself */
    double best_mean;
    int64_t best_step;
    double recent[GD_SERIES_RECENT]; /* the last means; value i at i % GD_SERIES_RECENT */
    double height; /* the highest mean before those, or the first; infinite: one was 0 or less */
    double crest;  /* the highest mean, which decays to the running one in GD_SERIES_SINKS steps */
};
#define GD_SERIES_WINDOW 20   /* steps */
#define GD_SERIES_WARMUP 10   /* values before comparisons start */
#define GD_SERIES_FLOOR  1e-3 /* least deviation, as a share of the running mean */
#define GD_SERIES_SUNK   0.05 /* the same for mean, as a share of how far it is below the crest */
#define GD_SERIES_SINKS  200
#define GD_SERIES_REACH  10
#define GD_SERIES_BETTER 1e-4
#define GD_FIGURE_MAX    1e9
/* The statistics of a single number, such as a metric. */
void gd_number_stats(double value, struct gd_stats *ret);
/* Adds a value after it was judged, even one that fired: a new level becomes normal in about one
 * window. After the warm-up, a value more than GD_SERIES_REACH deviations away (norm:
 * GD_SERIES_REACH times its running mean) is added as if it were just that far, so that one spike
 * does not hide the next. A second value of the same step, and an empty or non-finite one, are
 * ignored. */
void gd_series_add(struct gd_series *series, const struct gd_stats *stats, int64_t step);

/* What is known about one value at one time. */
struct gd_observation {
    const struct gd_stats *stats; /* NULL: missing, `error` says why */
    unsigned error; /* bits of enum gd_hit_error; with stats: why the previous value is missing */
    enum gd_dtype dtype; /* GD_DT_NONE: unknown */
    int range;           /* which of stats->in_range is the watchpoint's; -1 none */
    int64_t step;        /* the step in which it is judged */
    int64_t value_step;  /* the step that computed it; -1 unknown (then it counts as this step's) */
    const struct gd_series *series; /* before this value; NULL: none is kept */
    /* the session's metrics for expressions ("loss", "lr", "step"): true if known */
    bool (*scalar)(void *ctx, const char *name, double *ret);
    void *scalar_ctx;
};

/* Why no statistic of the values is available: NaN, Inf, empty; without stats the reason for that.
 * 0: no such reason. */
unsigned gd_statistic_errors(const struct gd_observation *seen);
/* For recorded statistics: a lower bound of the NaN or infinite elements where the exact count is
 * unknown. false: nothing proves that there are any. */
bool gd_statistic_at_least(enum gd_statistic statistic, const struct gd_observation *seen,
                           double *ret);
/* The statistic; on failure false, and *error gets bits of enum gd_hit_error. */
bool gd_statistic_value(enum gd_statistic statistic, const struct gd_observation *seen, double *ret,
                        unsigned *error);

#endif
