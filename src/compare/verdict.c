// SPDX-License-Identifier: GPL-3.0-or-later
/* Verdict names, tolerances per type, and the comparison of statistics. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "compare/compare.h"

static const char *const verdict_names[GD_V_COUNT] = {
    [GD_V_SAME] = "SAME",
    [GD_V_PASS] = "PASS",
    [GD_V_WARN] = "WARN",
    [GD_V_FAIL] = "FAIL",
    [GD_V_NONFINITE] = "NONFINITE",
    [GD_V_SHAPE] = "SHAPE",
    [GD_V_MISSING_A] = "MISSING-A",
    [GD_V_MISSING_B] = "MISSING-B",
    [GD_V_UNREADABLE] = "UNREADABLE",
    [GD_V_STAT_OK] = "STAT-OK",
    [GD_V_DIFF] = "DIFF",
};

const char *gd_verdict_name(enum gd_agreement verdict)
{
    return verdict_names[verdict];
}

bool gd_verdict_is_bad(enum gd_agreement verdict)
{
    return verdict == GD_V_FAIL || verdict == GD_V_NONFINITE || verdict == GD_V_SHAPE ||
           verdict == GD_V_UNREADABLE || verdict == GD_V_DIFF;
}

static const char *const profile_names[GD_PROFILE_COUNT] = {"cross", "strict", "numpy"};

enum gd_profile gd_profile_from_name(const char *name)
{
    int i = 0;

    while (i < GD_PROFILE_COUNT && strcasecmp(name, profile_names[i]) != 0) {
        i++;
    }
    return (enum gd_profile)i;
}

/* Classes of types, finest to coarsest. */
enum fineness { EXACT, FINE64, FINE32, FINE16, FINE_BRAIN, FINE8, FINE_COUNT };

static enum fineness fineness_of(enum gd_stored stored)
{
    switch (stored) {
    case GD_STORED_FLOAT64:
    case GD_STORED_COMPLEX128: return FINE64;
    case GD_STORED_FLOAT32:
    case GD_STORED_COMPLEX64: return FINE32;
    case GD_STORED_FLOAT16:
    case GD_STORED_COMPLEX32: return FINE16;
    case GD_STORED_BFLOAT16: return FINE_BRAIN;
    default:
        return stored >= GD_STORED_FLOAT8_E4M3FN && stored <= GD_STORED_FLOAT4_E2M1 ? FINE8 : EXACT;
    }
}

struct gd_tolerance gd_profile_tolerance(enum gd_profile profile, enum gd_stored a,
                                         enum gd_stored b)
{
    static const struct gd_tolerance table[2][FINE_COUNT] = {
        [GD_PROFILE_CROSS] =
            {{0, 0}, {1e-4, 1e-4}, {1e-4, 1e-4}, {1e-3, 1e-3}, {1.6e-2, 1e-2}, {0.125, 0.0625}},
        [GD_PROFILE_STRICT] =
            {{0, 0}, {1e-7, 1e-7}, {1.3e-6, 1e-5}, {1e-3, 1e-5}, {1.6e-2, 1e-5}, {0.125, 0.0625}},
    };
    enum fineness x = fineness_of(a), y = fineness_of(b);

    if (profile == GD_PROFILE_NUMPY) {
        return (struct gd_tolerance){1e-5, 1e-8};
    }
    return table[profile == GD_PROFILE_STRICT][x > y ? x : y];
}

/* Keeps the largest difference of what both sides know; NaN or infinity on only one side is
 * worst. */
static void keep_larger(double *worst, bool known, double a, double b, double scale)
{
    double by;

    if (!known || a == b || (isnan(a) && isnan(b))) {
        return;
    }
    by = isfinite(a) && isfinite(b) ? fabs(a - b) / fmax(fabs(scale), 0x1p-20) : INFINITY;
    *worst = by > *worst ? by : *worst;
}

/* If a side has a lower bound, only smaller counts differ for certain. */
static bool counts_differ(const struct gd_stats *a, uint64_t in_a, const struct gd_stats *b,
                          uint64_t in_b, unsigned bit)
{
    bool bound_a = (a->unknown & bit) != 0, bound_b = (b->unknown & bit) != 0;

    return bound_a ? !bound_b && in_a > in_b : bound_b ? in_b > in_a : in_a != in_b;
}

enum gd_agreement gd_compare_stats(const struct gd_stats *a, const struct gd_stats *b,
                                   struct gd_tolerance tolerance)
{
    unsigned unknown = a->unknown | b->unknown;
    bool ends = !(unknown & (GD_UNKNOWN_MAX | GD_UNKNOWN_MIN));
    double worst = 0, largest = fmax(fabs(b->min), fabs(b->max));

    if ((unknown & GD_UNKNOWN_ALL) == GD_UNKNOWN_ALL) {
        return GD_V_UNREADABLE;
    }
    if (!(unknown & GD_UNKNOWN_COUNT) && a->count != b->count) {
        return GD_V_SHAPE;
    }
    if (counts_differ(a, a->nan, b, b->nan, GD_UNKNOWN_NAN) ||
        counts_differ(a, a->pos_inf, b, b->pos_inf, GD_UNKNOWN_INF) ||
        counts_differ(a, a->neg_inf, b, b->neg_inf, GD_UNKNOWN_INF)) {
        return GD_V_NONFINITE;
    }
    keep_larger(&worst, !(unknown & GD_UNKNOWN_SUM_SQ), sqrt(a->sum_sq), sqrt(b->sum_sq),
                sqrt(b->sum_sq));
    keep_larger(&worst, !(unknown & GD_UNKNOWN_MAX), a->max, b->max, b->max);
    keep_larger(&worst, !(unknown & GD_UNKNOWN_MIN), a->min, b->min, b->min);
    keep_larger(&worst, !(unknown & GD_UNKNOWN_MEAN), a->mean, b->mean, ends ? largest : b->mean);
    if (isinf(worst)) {
        return GD_V_NONFINITE;
    }
    return worst <= 10 * tolerance.rtol ? GD_V_STAT_OK : worst <= 0.05 ? GD_V_WARN : GD_V_FAIL;
}

bool gd_difference_is_empty(const struct gd_difference *difference)
{
    return difference->has_metrics && difference->metrics.count == 0;
}
