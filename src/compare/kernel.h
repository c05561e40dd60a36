// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Kernels that summarise a block of two tensors, for metrics.c. They expect elements that are
 * finite on both sides; otherwise `abs` is not finite and the other results are invalid. There is
 * one set per CPU feature level, all generated from kernel_body.h.
 */
#ifndef GD_COMPARE_KERNEL_H
#define GD_COMPARE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gd_pair_rule {
    double rtol, atol; /* |a - b| <= atol + rtol |b| is close */
    /* |b| must be larger to have a relative error */
    double small;
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
/* The best one this CPU supports. */
const struct gd_pair_level *gd_pair_level(void);
/* Best first; ends with NULL. */
extern const struct gd_pair_level *const gd_pair_levels[];

/* How much a pair exceeds its tolerance; with zero tolerance, the difference itself. */
static inline double gd_pair_score(const struct gd_pair_rule *rule, double distance, double size_b)
{
    double allowed = rule->atol + rule->rtol * size_b;

    return allowed > 0 ? distance / allowed : distance;
}

#endif
