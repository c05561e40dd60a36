// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The formulas, with n elements and receptive field k = the product of the axes after the first
 * two; fan_in = in * k, fan_out = out * k:
 *   Xavier      sqrt(2 / (fan_in + fan_out))   Glorot and Bengio 2010, eq. 16
 *   He          sqrt(2 / fan)                  He et al. 2015, eq. 10 and 14 (kaiming, gain sqrt 2)
 *   LeCun       sqrt(1 / fan)                  LeCun et al. 1998 (kaiming with gain 1)
 *   default     sqrt(1 / (3 fan_in))           torch.nn and mindspore.nn since 2.0: HeUniform with
 *                                              a = sqrt(5), bounds 1 / sqrt(fan_in)
 *   recurrent   sqrt(1 / (3 hidden))           torch.nn's and mindspore.nn's RNN, LSTM, GRU: bounds
 *                                              1 / sqrt(hidden), out = gates * hidden
 *   N(0, s)     s = 0.01 (mindspore.nn before 2.0, Embedding), 0.02 (transformers), 1 (Embedding
 *               of torch.nn)
 *   truncated   0.8796 s: a normal distribution cut at 2 s (TruncatedNormal)
 * Sampling error of a deviation: std sqrt((kurtosis - 1) / 4n), kurtosis 3 (normal), 1.8 (uniform).
 */
#include "engine/init_scheme.h"

#include <math.h>
#include <string.h>

#define TRUNCATED        0.87962566 /* deviation of a standard normal cut at 2 */
#define UNIFORM_PEAK     1.7320508  /* bound / deviation */
#define UNIFORM_RATIO    0.8660254  /* abs_mean / deviation */
#define NORMAL_RATIO     0.7978846
#define ORTHOGONAL_ERROR 1e-4

const char *gd_init_shape_name(enum gd_init_shape shape)
{
    static const char *const names[] = {
        [GD_INIT_UNKNOWN] = "",          [GD_INIT_UNIFORM] = "uniform",
        [GD_INIT_NORMAL] = "normal",     [GD_INIT_TRUNCATED] = "truncated normal",
        [GD_INIT_CONSTANT] = "constant", [GD_INIT_ORTHOGONAL] = "orthogonal"};

    return names[shape];
}

static void find_fans(const struct gd_shape *shape, struct gd_init_verdict *ret)
{
    int64_t field = 1;

    if (shape->rank < 2) {
        return;
    }
    for (int i = 2; i < shape->rank; i++) {
        field *= shape->dim[i];
    }
    ret->fan_in = shape->dim[1] * field;
    ret->fan_out = shape->dim[0] * field;
}

/* The rows or columns of an orthogonal matrix have length 1, so that the sum of squares is their
 * number. That of rows scaled to length 1 is, too, and of a random matrix with rows of that mean
 * length in 1 case of 200 with 10^6 elements: the values must tell. */
static bool is_orthogonal(const struct gd_shape *shape, const struct gd_stats *stats)
{
    int64_t rows = shape->rank == 2 ? shape->dim[0] : 0;
    int64_t columns = shape->rank == 2 ? shape->dim[1] : 0;
    int64_t least = rows < columns ? rows : columns;

    return least > 1 && (double)stats->count > 4 &&
           fabs(stats->sum_sq / (double)least - 1) < ORTHOGONAL_ERROR * 0.1;
}

static enum gd_init_shape find_shape(const struct gd_shape *shape, const struct gd_stats *stats,
                                     const struct gd_init_hints *hints)
{
    double n = (double)stats->count;
    double peak = fmax(fabs(stats->min), fabs(stats->max)) / stats->std;
    double ratio = stats->abs_mean / stats->std;

    if (stats->min == stats->max) {
        return GD_INIT_CONSTANT;
    }
    if (!hints->not_orthogonal && is_orthogonal(shape, stats)) {
        return GD_INIT_ORTHOGONAL;
    }
    if (stats->count < GD_INIT_FEWEST || !(stats->std > 0)) {
        return GD_INIT_UNKNOWN;
    }
    /* halfway between the two, and nothing beyond the bounds of a uniform distribution */
    if (peak < UNIFORM_PEAK * (1 + 3 / sqrt(n))) {
        return ratio > (UNIFORM_RATIO + NORMAL_RATIO) / 2 ? GD_INIT_UNIFORM : GD_INIT_UNKNOWN;
    }
    if (fabs(ratio - NORMAL_RATIO) > 0.05 + 2 / sqrt(n)) {
        return GD_INIT_UNKNOWN;
    }
    /* of 2000 normal values some are beyond 2.4 deviations: 2 / 0.88 and its error are not */
    return peak < 2 / TRUNCATED * (1 + 3 / sqrt(n)) && n >= 400 ? GD_INIT_TRUNCATED
                                                                : GD_INIT_NORMAL;
}

struct search {
    struct gd_init_verdict *ret;
    double std;
    double apart; /* of the nearest, as a ratio of logarithms */
};

static void try_scheme(struct search *search, const char *name, const char *fan, double expected)
{
    struct gd_init_verdict *ret = search->ret;
    double relative = ret->error / search->std; /* of the expected deviation, too */
    double apart = fabs(log(search->std / expected));

    if (!isfinite(expected) || expected <= 0) {
        return;
    }
    if (!ret->nearest.name || apart < search->apart) {
        ret->nearest = (struct gd_init_match){name, fan, expected};
        search->apart = apart;
    }
    if (fabs(search->std - expected) > GD_INIT_SIGMAS * relative * expected ||
        ret->match_count == GD_INIT_MATCHES) {
        return;
    }
    int at = ret->match_count++;
    while (at > 0 && fabs(log(search->std / ret->match[at - 1].std)) > apart) {
        ret->match[at] = ret->match[at - 1];
        at--;
    }
    ret->match[at] = (struct gd_init_match){name, fan, expected};
}

static void try_recurrent(struct search *search)
{
    static const double gates[] = {1, 3, 4};

    for (size_t i = 0; i < sizeof(gates) / sizeof(gates[0]); i++) {
        double hidden = (double)search->ret->fan_out / gates[i];
        try_scheme(search, "default (uniform, 1 / sqrt hidden)", "", sqrt(1 / (3 * hidden)));
    }
}

static void try_all(struct search *search, bool recurrent)
{
    const struct gd_init_verdict *ret = search->ret;
    double in = (double)ret->fan_in, out = (double)ret->fan_out;
    bool uniform = ret->shape == GD_INIT_UNIFORM;
    bool cut = ret->shape == GD_INIT_TRUNCATED;

    if (in > 0 && out > 0) {
        try_scheme(search, "Xavier", "", sqrt(2 / (in + out)));
        try_scheme(search, "He", "fan_in", sqrt(2 / in));
        if (in != out) {
            try_scheme(search, "He", "fan_out", sqrt(2 / out));
        }
        try_scheme(search, "LeCun", "fan_in", sqrt(1 / in));
        if (in != out) {
            try_scheme(search, "LeCun", "fan_out", sqrt(1 / out));
        }
        if (uniform && recurrent) {
            try_recurrent(search);
        } else if (!cut && ret->shape != GD_INIT_NORMAL) {
            try_scheme(search, "default (He uniform, a = sqrt 5)", "fan_in", sqrt(1 / (3 * in)));
        }
    }
    if (!uniform) {
        try_scheme(search, "N(0, 0.01)", "", 0.01);
        try_scheme(search, "N(0, 0.02)", "", 0.02);
        if (fabs(search->std - 1) <= GD_INIT_SIGMAS * ret->error) {
            try_scheme(search, "N(0, 1)", "", 1); /* an embedding's; nothing else is near it */
        }
    }
    if (cut) {
        try_scheme(search, "TruncatedNormal(0.01)", "", 0.01 * TRUNCATED);
        try_scheme(search, "TruncatedNormal(0.02)", "", 0.02 * TRUNCATED);
    }
}

void gd_init_judge(const struct gd_shape *shape, const struct gd_stats *stats,
                   const struct gd_init_hints *hints, struct gd_init_verdict *ret)
{
    *ret = (struct gd_init_verdict){.few = stats->count < GD_INIT_FEWEST};
    find_fans(shape, ret);
    if (stats->count == 0 || stats->nan + stats->pos_inf + stats->neg_inf > 0) {
        return;
    }
    ret->shape = find_shape(shape, stats, hints);
    if (ret->shape == GD_INIT_CONSTANT || ret->shape == GD_INIT_ORTHOGONAL || ret->few ||
        !(stats->std > 0)) {
        return;
    }
    double kurtosis = ret->shape == GD_INIT_UNIFORM ? 1.8 : 3;
    ret->error = stats->std * sqrt((kurtosis - 1) / (4 * (double)stats->count));
    struct search search = {.ret = ret, .std = stats->std};
    try_all(&search, hints->recurrent);
    ret->far = ret->fan_in > 0 && ret->match_count == 0 && ret->nearest.name &&
               search.apart > log(GD_INIT_FACTOR);
}
