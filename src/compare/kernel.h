// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a block of two tensors comes to, for metrics.c. A kernel takes elements that are finite on
 * both sides; where they were not, `abs` is not finite and the rest is not to be used. One set of
 * kernels for each level of a processor's abilities, written once in kernel_body.h.
 */
#ifndef GD_COMPARE_KERNEL_H
#define GD_COMPARE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gd_pair_rule {
    double rtol, atol; /* |a - b| <= atol + rtol |b| is close */
    double small;      /* |b| up to it has no relative error */
};

struct gd_pair_sums {
    double abs, sq;    /* of a - b */
    double aa, bb, ab; /* of a a, b b, a b */
    double max_abs, max_rel;
    double max_score;    /* of gd_pair_score */
    double max_a, max_b; /* the largest |a|, |b| */
    uint64_t equal, close, r1k, r5k;
};

struct gd_pair_level {
    const char *name;
    bool (*runs_here)(void);
    size_t step; /* n must be a multiple of it */
    void (*float32)(const float *a, const float *b, size_t n, const struct gd_pair_rule *rule,
                    struct gd_pair_sums *ret);
    void (*float64)(const double *a, const double *b, size_t n, const struct gd_pair_rule *rule,
                    struct gd_pair_sums *ret);
    /* Adds the distances of n patterns of sign and magnitude to the GD_ULP_BUCKETS of compare.h. */
    void (*ulp32)(const uint32_t *a, const uint32_t *b, size_t n, uint64_t *buckets);
};

extern const struct gd_pair_level gd_pair_avx512, gd_pair_avx2, gd_pair_portable;
/* The best that runs here. */
const struct gd_pair_level *gd_pair_level(void);
/* For tests: from now on this one; NULL: the best again. */
void gd_pair_use_level(const struct gd_pair_level *level);
/* Best first; ends with NULL. */
extern const struct gd_pair_level *const gd_pair_levels[];

/* By how much a pair is worse than its tolerance; where nothing is allowed, by how much at all. */
static inline double gd_pair_score(const struct gd_pair_rule *rule, double distance, double size_b)
{
    double allowed = rule->atol + rule->rtol * size_b;

    return allowed > 0 ? distance / allowed : distance;
}

#endif
