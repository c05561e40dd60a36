// SPDX-License-Identifier: GPL-3.0-or-later
/* Shared by the files that match two tables. */
#ifndef GD_COMPARE_MATCH_IMPL_H
#define GD_COMPARE_MATCH_IMPL_H

#include "compare/match.h"
#include "engine/hash_index.h"

struct gd_keys {                 /* units by key; those with the same key form a chain, in order */
    struct gd_hash_index lookup; /* the first of each chain */
    struct gd_keyed {
        const char *key; /* NULL: no key */
        /* UINT32_MAX: none. Only the first of a chain has last and free (all before it have
         * partners) */
        uint32_t next, last, free;
    } * unit;
    struct gd_arena arena;
};

#define GD_FINGERPRINT_QUANTILES 15
struct gd_fingerprint { /* of a tensor's values, in any order of axes */
    uint32_t unit;
    bool good, coarse;
    int rank;
    int64_t dim[GD_MAX_RANK];
    struct gd_stats stats;
    double cubes;       /* sum of |x|^3 over the finite elements, scaled: see fingerprint.c */
    bool has_quantiles; /* small enough to sort all elements */
    double quantile[GD_FINGERPRINT_QUANTILES];
};
/* `good` is false if the tensor has no fingerprint. options: for go_on; may be NULL. */
int gd_fingerprint_item(struct gd_table *table, struct gd_item *item,
                        const struct gd_match_options *options, struct gd_fingerprint *ret,
                        struct gd_err *err);
bool gd_fingerprint_same(const struct gd_fingerprint *x, const struct gd_fingerprint *y);

struct gd_matcher {
    struct gd_table *a, *b;
    const struct gd_match_options *options;
    uint32_t *of_a, *of_b; /* partners; UINT32_MAX: none */
    enum gd_how *how;      /* per unit of B */
    bool guessed;
};

/* Matches remaining units between matched ones. */
int gd_match_by_order(struct gd_matcher *m, struct gd_err *err);
/* Pairs as many of these units as possible, in order; paired units have similar shapes and
 * operators. */
int gd_align(struct gd_matcher *m, const uint32_t *a, size_t count_a, const uint32_t *b,
             size_t count_b, enum gd_how how, struct gd_err *err);
/* Matches operators of the forward pass by their layers: see layers.c. */
int gd_match_by_layer(struct gd_matcher *m, struct gd_err *err);

#endif
