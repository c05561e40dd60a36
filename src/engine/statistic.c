// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/statistic.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/session.h"

#define EPSILON 1e-9 /* of the relative update; MindSpore's, which no release lets you change */

/* ---- statistics --------------------------------------------------------------------------- */

static double percentage_of(uint64_t part, uint64_t count)
{
    return count ? (double)part * 100 / (double)count : 0;
}

/* 0/0 is undefined if either is all zero. Rounding must not leave -1 to 1. */
static double cosine_of(const struct gd_stats *s)
{
    double cosine = s->dot / (sqrt(s->sum_sq) * sqrt(s->sum_sq_prev));

    return isfinite(cosine) ? fmax(-1, fmin(1, cosine)) : NAN;
}

/* The size of the elements, and of their change since the previous step. */
static double size_in(enum gd_statistic statistic, const struct gd_stats *s)
{
    switch (statistic) {
    case GD_STAT_MIN: return s->min;
    case GD_STAT_MAX: return s->max;
    case GD_STAT_SPREAD: return s->max - s->min;
    case GD_STAT_MAX_ABS: return fmax(fabs(s->min), fabs(s->max));
    case GD_STAT_MEAN: return s->mean;
    case GD_STAT_ABS_MEAN: return s->abs_mean;
    case GD_STAT_STD: return s->std;
    case GD_STAT_SUM_SQ: return s->sum_sq;
    case GD_STAT_NORM: return sqrt(s->sum_sq);
    case GD_STAT_DELTA_ABS_MEAN: return s->mean_abs_delta;
    case GD_STAT_DELTA_MAX_ABS: return s->max_abs_delta;
    case GD_STAT_DELTA_MEAN: return s->mean_delta;
    case GD_STAT_DELTA_NORM: return sqrt(s->sum_sq_delta);
    case GD_STAT_PREV_ABS_MEAN: return s->mean_abs_prev;
    case GD_STAT_PREV_NORM: return sqrt(s->sum_sq_prev);
    case GD_STAT_UPDATE_RATIO: return s->mean_abs_delta / (s->mean_abs_prev + EPSILON);
    case GD_STAT_COSINE: return cosine_of(s);
    default: return NAN;
    }
}

/* Without the past of more than one step. */
static double value_in(enum gd_statistic statistic, const struct gd_stats *s, int range)
{
    switch (statistic) {
    case GD_STAT_COUNT: return (double)s->count;
    case GD_STAT_NAN: return (double)s->nan;
    case GD_STAT_INF: return (double)(s->pos_inf + s->neg_inf);
    case GD_STAT_POS_INF: return (double)s->pos_inf;
    case GD_STAT_NEG_INF: return (double)s->neg_inf;
    case GD_STAT_NONFINITE: return (double)(s->nan + s->pos_inf + s->neg_inf);
    case GD_STAT_ZERO: return (double)s->zero;
    case GD_STAT_NEG_ZERO: return (double)s->neg_zero;
    case GD_STAT_POSITIVE: return (double)s->positive;
    case GD_STAT_NEGATIVE: return (double)s->negative;
    case GD_STAT_DENORMAL: return (double)s->denormal;
    case GD_STAT_MISMATCH: return (double)s->mismatch;
    case GD_STAT_UNPAIRED: return (double)s->unpaired;
    case GD_STAT_ZERO_PERCENTAGE: return percentage_of(s->zero, s->count);
    case GD_STAT_DENORMAL_PERCENTAGE: return percentage_of(s->denormal, s->count);
    case GD_STAT_DEAD_PERCENTAGE: return percentage_of(s->dead_units, s->units);
    case GD_STAT_RANGE_PERCENTAGE: return percentage_of(s->in_range[range], s->count);
    case GD_STAT_CLIP_PERCENTAGE:
        return percentage_of(s->in_range[range] < s->count ? s->count - s->in_range[range] : 0,
                             s->count);
    default: return size_in(statistic, s);
    }
}

/* A statistic relative to a past of 0: bounded, so that it can be shown and stored. */
static double clamp_figure(double figure)
{
    return isnan(figure) ? figure : fmax(-GD_FIGURE_MAX, fmin(GD_FIGURE_MAX, figure));
}

static double deviation_of(double variance, double middle)
{
    return fmax(sqrt(variance), GD_SERIES_FLOOR * fabs(middle));
}

/* For a loss that has come down, an increase that is small compared with its peak is not a jump. */
static double mean_deviation(const struct gd_series *past)
{
    return fmax(deviation_of(past->mean_var, past->mean),
                GD_SERIES_SUNK * (past->crest - past->mean));
}

static double deviations_away(double value, double middle, double deviation)
{
    return value == middle ? 0 : clamp_figure((value - middle) / deviation);
}

static bool is_better(double mean, double best)
{
    return mean < best - GD_SERIES_BETTER * fabs(best);
}

#define GD_RISE_VALUES 3 /* consecutive ones: a single outlier is a spike */

/* The least of the last means. */
static double least_recent(const struct gd_series *past, double least)
{
    for (uint32_t back = 1; back < GD_RISE_VALUES; back++) {
        least = fmin(least, past->recent[(past->seen - back) % GD_SERIES_RECENT]);
    }
    return least;
}

/* How the value differs from those of earlier steps. */
static double departure_in(enum gd_statistic statistic, const struct gd_observation *seen)
{
    const struct gd_series *past = seen->series;
    const struct gd_stats *s = seen->stats;
    double norm = sqrt(s->sum_sq);

    switch (statistic) {
    case GD_STAT_Z_SCORE:
        return deviations_away(s->abs_mean, past->abs_mean,
                               deviation_of(past->abs_mean_var, past->abs_mean));
    case GD_STAT_MEAN_Z_SCORE: return deviations_away(s->mean, past->mean, mean_deviation(past));
    case GD_STAT_NORM_RATIO: return norm == past->norm ? 1 : clamp_figure(norm / past->norm);
    case GD_STAT_MEAN_RATIO: /* for a loss, a ratio to a mean of 0 or less would say nothing */
        return past->mean <= 0 ? NAN
                               : clamp_figure(s->mean / fmax(past->mean, mean_deviation(past)));
    case GD_STAT_STALL:
        return is_better(s->mean, past->best_mean)
                   ? 0
                   : fmax(0, (double)(seen->step - past->best_step));
    case GD_STAT_RISE: return clamp_figure(least_recent(past, s->mean) / past->height);
    default: return NAN;
    }
}

/* ---- the table ----------------------------------------------------------------------------- */

#define NAN_INF     (GD_HIT_NAN | GD_HIT_INF)
#define OF_VALUES   (GD_HIT_NAN | GD_HIT_INF | GD_HIT_EMPTY)
#define ONE_BEFORE  GD_NEED_PREVIOUS
#define MANY_BEFORE GD_NEED_SERIES

struct entry {
    const char *name; /* with "(prev)" or "(cur-prev)" if it is not that of the value */
    const char *text;
    unsigned needs;  /* in addition to GD_NEED_FINITE */
    unsigned blocks; /* what makes the statistic unknown if the tensor holds it */
    unsigned part;   /* the part of gd_stats it is computed from; 0: GD_UNKNOWN_REST */
};

static const struct entry table[GD_STAT_TOTAL] = {
    [GD_STAT_COUNT] = {"count", "number of elements", 0, 0, GD_UNKNOWN_COUNT},
    [GD_STAT_NAN] = {"nan", "elements that are NaN", 0, 0, GD_UNKNOWN_NAN},
    [GD_STAT_INF] = {"inf", "elements that are infinite", 0, 0, GD_UNKNOWN_INF},
    [GD_STAT_POS_INF] = {"pos_inf", "elements that are +Inf", 0, 0, GD_UNKNOWN_INF},
    [GD_STAT_NEG_INF] = {"neg_inf", "elements that are -Inf", 0, 0, GD_UNKNOWN_INF},
    [GD_STAT_NONFINITE] = {"nonfinite", "elements that are NaN or infinite", 0, 0,
                           GD_UNKNOWN_NAN | GD_UNKNOWN_INF},
    [GD_STAT_ZERO] = {"zero", "elements that are 0", 0, 0, GD_UNKNOWN_ZERO},
    [GD_STAT_NEG_ZERO] = {"neg_zero", "elements that are -0", 0, 0},
    [GD_STAT_POSITIVE] = {"positive", "finite elements above 0", 0, 0, GD_UNKNOWN_SIGNS},
    [GD_STAT_NEGATIVE] = {"negative", "finite elements below 0", 0, 0, GD_UNKNOWN_SIGNS},
    [GD_STAT_DENORMAL] = {"denormal", "elements too small for full precision", 0, 0},
    [GD_STAT_MIN] = {"min", "smallest element", 0, OF_VALUES, GD_UNKNOWN_MIN},
    [GD_STAT_MAX] = {"max", "largest element", 0, OF_VALUES, GD_UNKNOWN_MAX},
    [GD_STAT_SPREAD] = {"spread", "largest element minus smallest", 0, OF_VALUES,
                        GD_UNKNOWN_MIN | GD_UNKNOWN_MAX},
    [GD_STAT_MAX_ABS] = {"max_abs", "largest magnitude", 0, OF_VALUES,
                         GD_UNKNOWN_MIN | GD_UNKNOWN_MAX},
    [GD_STAT_MEAN] = {"mean", "mean", 0, OF_VALUES, GD_UNKNOWN_MEAN},
    [GD_STAT_ABS_MEAN] = {"abs_mean", "mean magnitude", 0, OF_VALUES},
    [GD_STAT_STD] = {"std", "standard deviation", 0, OF_VALUES},
    [GD_STAT_SUM_SQ] = {"sum_sq", "sum of squares", 0, OF_VALUES, GD_UNKNOWN_SUM_SQ},
    [GD_STAT_NORM] = {"norm", "square root of the sum of squares", 0, OF_VALUES, GD_UNKNOWN_SUM_SQ},
    [GD_STAT_ZERO_PERCENTAGE] = {"zero_percentage", "share of zeros, in %", 0, NAN_INF,
                                 GD_UNKNOWN_ZERO | GD_UNKNOWN_COUNT},
    [GD_STAT_DENORMAL_PERCENTAGE] = {"denormal_percentage",
                                     "share of elements too small for full precision, in %", 0,
                                     NAN_INF},
    [GD_STAT_RANGE_PERCENTAGE] = {"range_percentage", "share of elements in the range, in %",
                                  GD_NEED_RANGE, NAN_INF},
    [GD_STAT_CLIP_PERCENTAGE] = {"clip_percentage", "share of elements beyond the limit, in %",
                                 GD_NEED_RANGE, GD_HIT_NAN},
    [GD_STAT_DEAD_PERCENTAGE] = {"dead_percentage",
                                 "share of units that were 0 for several steps, in %",
                                 GD_NEED_UNITS, 0},
    [GD_STAT_DELTA_ABS_MEAN] = {"abs_mean(cur-prev)", "mean magnitude of the change", ONE_BEFORE,
                                OF_VALUES},
    [GD_STAT_DELTA_MAX_ABS] = {"max_abs(cur-prev)", "largest change", ONE_BEFORE, OF_VALUES},
    [GD_STAT_DELTA_MEAN] = {"mean(cur-prev)", "mean change", ONE_BEFORE, OF_VALUES},
    [GD_STAT_DELTA_NORM] = {"norm(cur-prev)", "norm of the change", ONE_BEFORE, OF_VALUES},
    [GD_STAT_PREV_ABS_MEAN] = {"abs_mean(prev)", "mean magnitude in the previous step", ONE_BEFORE,
                               OF_VALUES},
    [GD_STAT_PREV_NORM] = {"norm(prev)", "norm in the previous step", ONE_BEFORE, OF_VALUES},
    [GD_STAT_UPDATE_RATIO] = {"update_ratio",
                              "mean magnitude of the change over the mean magnitude", ONE_BEFORE,
                              OF_VALUES},
    [GD_STAT_COSINE] = {"cosine", "cosine of the angle to the value of the previous step",
                        ONE_BEFORE, OF_VALUES},
    [GD_STAT_MISMATCH] = {"mismatch", "elements that are not close to those of the previous step",
                          ONE_BEFORE | GD_NEED_TOLERANCE, 0},
    [GD_STAT_UNPAIRED] = {"unpaired",
                          "elements that are NaN or infinite now or were in the previous step",
                          ONE_BEFORE, 0},
    [GD_STAT_Z_SCORE] = {"z_score", "deviations of abs_mean above its running mean, or below",
                         MANY_BEFORE, OF_VALUES},
    [GD_STAT_NORM_RATIO] = {"norm_ratio", "norm over its running mean", MANY_BEFORE, OF_VALUES,
                            GD_UNKNOWN_SUM_SQ},
    [GD_STAT_MEAN_RATIO] = {"mean_ratio",
                            "mean over its running mean or, where that is larger, its deviation",
                            MANY_BEFORE, OF_VALUES, GD_UNKNOWN_MEAN},
    [GD_STAT_MEAN_Z_SCORE] = {"mean_z_score", "deviations of mean above its running mean, or below",
                              MANY_BEFORE, OF_VALUES, GD_UNKNOWN_MEAN},
    [GD_STAT_STALL] = {"stall", "steps since the lowest mean so far", MANY_BEFORE, OF_VALUES,
                       GD_UNKNOWN_MEAN},
    [GD_STAT_RISE] = {"rise",
                      "lowest of the last 3 means over the highest of those 10 or more steps ago",
                      MANY_BEFORE, OF_VALUES, GD_UNKNOWN_MEAN},
    [GD_STAT_AGE] = {"age", "steps since the value was computed", 0, 0},
};

static const struct {
    const char *name;
    enum gd_statistic statistic;
} aliases[] = {
    {"max_min", GD_STAT_SPREAD}, /* MindInsight's words */
    {"abs_mean_update_ratio", GD_STAT_UPDATE_RATIO},
    {"non_finite", GD_STAT_NONFINITE},
    {"sd", GD_STAT_STD},
    {"l2", GD_STAT_NORM},
};

static const struct entry *entry_of(enum gd_statistic statistic)
{
    return statistic > GD_STAT_NONE && statistic < GD_STAT_TOTAL ? &table[statistic] : NULL;
}

unsigned gd_statistic_needs(enum gd_statistic statistic)
{
    const struct entry *entry = entry_of(statistic);

    return entry ? entry->needs | (entry->blocks ? GD_NEED_FINITE : 0U) : 0;
}

const char *gd_statistic_name(enum gd_statistic statistic)
{
    const struct entry *entry = entry_of(statistic);

    return entry ? entry->name : "";
}

const char *gd_statistic_text(enum gd_statistic statistic)
{
    const struct entry *entry = entry_of(statistic);

    return entry ? entry->text : "";
}

static bool is_named(const struct entry *entry, const char *name, const char *of)
{
    size_t len = strcspn(entry->name, "(");
    const char *rest = entry->name + len + (entry->name[len] == '(');
    size_t rest_len = strcspn(rest, ")");

    return strlen(name) == len && strncmp(entry->name, name, len) == 0 && strlen(of) == rest_len &&
           strncmp(rest, of, rest_len) == 0;
}

enum gd_statistic gd_statistic_find(const char *name, const char *of)
{
    bool now = !of || !*of || strcmp(of, "cur") == 0;

    if (now) {
        of = "";
    }
    for (size_t i = 0; now && i < sizeof(aliases) / sizeof(*aliases); i++) {
        if (strcmp(aliases[i].name, name) == 0) {
            return aliases[i].statistic;
        }
    }
    for (int i = GD_STAT_NONE + 1; i < GD_STAT_TOTAL; i++) {
        if (is_named(&table[i], name, of)) {
            return (enum gd_statistic)i;
        }
    }
    return GD_STAT_NONE;
}

/* ---- values -------------------------------------------------------------------------------- */

static bool has_numbers(enum gd_dtype dtype)
{
    return dtype == GD_DT_NONE || gd_dtype_size(dtype) > 0; /* NONE: not set */
}

static bool age_of(const struct gd_observation *seen, double *ret, unsigned *error)
{
    if (seen->value_step < 0 && !seen->stats) {
        *error |= seen->error ? seen->error : GD_HIT_NO_VALUE;
        return false;
    }
    *ret = seen->value_step < 0 ? 0 : fmax(0, (double)(seen->step - seen->value_step));
    return true;
}

static bool is_unknown(enum gd_statistic statistic, const struct gd_stats *stats)
{
    unsigned part = table[statistic].part;

    return stats->unknown & (part ? part : GD_UNKNOWN_REST);
}

unsigned gd_statistic_errors(const struct gd_observation *seen)
{
    if (!seen->stats && !has_numbers(seen->dtype)) {
        return seen->error | GD_HIT_NOT_NUMBERS;
    }
    if (!seen->stats) {
        return seen->error ? seen->error : GD_HIT_NO_VALUE;
    }
    return (seen->stats->nan ? GD_HIT_NAN : 0U) |
           (seen->stats->pos_inf || seen->stats->neg_inf ? GD_HIT_INF : 0U) |
           (seen->stats->count ? 0U : GD_HIT_EMPTY);
}

/* Some elements are finite now that were not in the previous step. */
static bool was_not_finite(const struct gd_stats *stats)
{
    return stats->has_prev && stats->unpaired > stats->nan + stats->pos_inf + stats->neg_inf;
}

/* How many values must have been seen before. */
static uint32_t least_seen(enum gd_statistic statistic)
{
    return statistic == GD_STAT_RISE ? GD_RISE_VALUES - 1 : GD_SERIES_WARMUP;
}

static unsigned find_missing(enum gd_statistic statistic, unsigned needs, unsigned blocks,
                             const struct gd_observation *seen)
{
    const struct gd_stats *stats = seen->stats;
    unsigned error = 0;

    if ((needs & GD_NEED_PREVIOUS) && !stats->has_prev) {
        error |= GD_HIT_NO_PREVIOUS | seen->error;
    }
    if ((needs & GD_NEED_PREVIOUS) && blocks && was_not_finite(stats)) {
        error |= GD_HIT_PREVIOUS_NOT_FINITE;
    }
    if ((needs & GD_NEED_RANGE) &&
        (seen->range < 0 || seen->range >= stats->range_count || seen->range >= GD_MAX_RANGES)) {
        error |= GD_HIT_NO_FIGURE;
    }
    if ((needs & GD_NEED_UNITS) && !stats->units) {
        error |= stats->count ? GD_HIT_NO_HISTORY : GD_HIT_EMPTY;
    }
    if ((needs & GD_NEED_SERIES) && (!seen->series || seen->series->seen < least_seen(statistic))) {
        error |= GD_HIT_NO_HISTORY;
    }
    return error;
}

bool gd_statistic_at_least(enum gd_statistic statistic, const struct gd_observation *seen,
                           double *ret)
{
    bool counts = statistic >= GD_STAT_NAN && statistic <= GD_STAT_NONFINITE;

    if (!counts || !seen->stats || !is_unknown(statistic, seen->stats)) {
        return false;
    }
    *ret = value_in(statistic, seen->stats, seen->range);
    return *ret > 0;
}

bool gd_statistic_value(enum gd_statistic statistic, const struct gd_observation *seen, double *ret,
                        unsigned *error)
{
    const struct entry *entry = entry_of(statistic);

    *error = 0;
    if (entry && statistic == GD_STAT_AGE) {
        return age_of(seen, ret, error);
    }
    if (!entry) {
        *error = GD_HIT_NO_FIGURE;
    } else if (!seen->stats) {
        *error = gd_statistic_errors(seen);
    } else {
        *error = (gd_statistic_errors(seen) & entry->blocks) |
                 find_missing(statistic, entry->needs, entry->blocks, seen);
        if (is_unknown(statistic, seen->stats)) {
            *error |= GD_HIT_NO_FIGURE;
        }
    }
    if (*error) {
        return false;
    }
    double value = entry->needs & GD_NEED_SERIES ? departure_in(statistic, seen)
                                                 : value_in(statistic, seen->stats, seen->range);
    if (isnan(value)) {
        *error = GD_HIT_NO_FIGURE;
        return false;
    }
    *ret = value;
    return true;
}

void gd_number_stats(double value, struct gd_stats *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->count = 1;
    ret->min = INFINITY;
    ret->max = -INFINITY;
    ret->nan = isnan(value) ? 1U : 0U;
    ret->pos_inf = isinf(value) && value > 0;
    ret->neg_inf = isinf(value) && value < 0;
    ret->zero = value == 0;
    ret->neg_zero = value == 0 && signbit(value);
    ret->denormal = fpclassify(value) == FP_SUBNORMAL;
    if (!isfinite(value)) {
        return;
    }
    ret->positive = value > 0;
    ret->negative = value < 0;
    ret->min = ret->max = ret->mean = value;
    ret->abs_mean = fabs(value);
    ret->sum_sq = value * value;
}

/* ---- the past ------------------------------------------------------------------------------ */

/* An outlier is added as a smaller one: one spike must not hide those that follow, and a new level
 * that stays is reached gradually. */
static void take_in(double value, double share, bool warm, double *middle, double *variance)
{
    double reach = GD_SERIES_REACH * deviation_of(*variance, *middle);

    if (warm && reach > 0) {
        value = fmax(*middle - reach, fmin(*middle + reach, value));
    }
    double away = value - *middle;
    *middle += share * away;
    *variance = fmin((1 - share) * (*variance + share * away * away), DBL_MAX);
}

static void take_in_norm(struct gd_series *series, double norm, double share, bool warm)
{
    if (warm && series->norm > 0) {
        norm = fmin(norm, GD_SERIES_REACH * series->norm);
    }
    series->norm += share * (norm - series->norm);
}

static void take_in_recent(struct gd_series *series, double mean)
{
    double *place = &series->recent[series->seen % GD_SERIES_RECENT];

    if (!series->seen) {
        series->height = mean;
    } else if (series->seen >= GD_SERIES_RECENT) {
        series->height = fmax(series->height, *place);
    }
    if (!(mean > 0)) {
        series->height = INFINITY; /* nothing is above it */
    }
    *place = mean;
}

/* As far out as take_in would add it. */
static void take_in_crest(struct gd_series *series, double mean, bool warm)
{
    double reach = series->mean + GD_SERIES_REACH * mean_deviation(series);

    if (!series->seen) {
        series->crest = mean;
    } else if (warm && reach > series->mean) {
        mean = fmin(mean, reach);
    }
    series->crest -= (series->crest - series->mean) / GD_SERIES_SINKS * (series->seen > 0);
    series->crest = fmax(series->crest, mean);
}

void gd_series_add(struct gd_series *series, const struct gd_stats *stats, int64_t step)
{
    double norm = sqrt(stats->sum_sq);

    if (!stats->count || stats->nan || stats->pos_inf || stats->neg_inf) {
        return;
    }
    if (!isfinite(norm) || !isfinite(stats->abs_mean) || !isfinite(stats->mean)) {
        return;
    }
    if (series->seen && step == series->last_step) {
        return;
    }
    if (!series->seen || is_better(stats->mean, series->best_mean)) {
        series->best_mean = stats->mean;
        series->best_step = step;
    }
    double share = fmax(2.0 / (GD_SERIES_WINDOW + 1), 1.0 / (series->seen + 1.0));
    bool warm = series->seen >= GD_SERIES_WARMUP;
    take_in(stats->abs_mean, share, warm, &series->abs_mean, &series->abs_mean_var);
    take_in_crest(series, stats->mean, warm);
    take_in(stats->mean, share, warm, &series->mean, &series->mean_var);
    take_in_norm(series, norm, share, warm);
    take_in_recent(series, stats->mean);
    if (series->seen < UINT32_MAX) {
        series->seen++;
    }
    series->last_step = step;
}
