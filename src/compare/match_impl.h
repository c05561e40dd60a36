// SPDX-License-Identifier: GPL-3.0-or-later
/* What the files that match two tables share. */
#ifndef GD_COMPARE_MATCH_IMPL_H
#define GD_COMPARE_MATCH_IMPL_H

#include "compare/match.h"
#include "dump/hash_index.h"

struct gd_keys { /* units by a text; those of the same one are in a chain, in their order */
    struct gd_hash_index lookup; /* the first of each chain */
    struct gd_keyed {
        const char *key;           /* NULL: it has none */
        uint32_t next, last, free; /* UINT32_MAX: none; last and free (all before it have partners)
                                      of the first of a chain alone */
    } * unit;
    struct gd_arena arena;
};

#define GD_FINGERPRINT_QUANTILES 15
struct gd_fingerprint { /* of a tensor's values, in any order of its axes */
    uint32_t unit;
    bool good, coarse;
    int rank;
    int64_t dim[GD_MAX_RANK];
    struct gd_stats stats;
    double cubes;       /* sum of |x|^3 over the finite elements, scaled: see print.c */
    bool has_quantiles; /* where it is small enough to sort them all */
    double quantile[GD_FINGERPRINT_QUANTILES];
};
/* Of a tensor that has no print `good` is false. options: who is asked whether to go on; NULL: no
 * one. */
int gd_fingerprint_item(struct gd_table *table, struct gd_item *item,
                        const struct gd_match_options *options, struct gd_fingerprint *ret,
                        struct gd_err *err);
bool gd_fingerprint_same(const struct gd_fingerprint *x, const struct gd_fingerprint *y);

struct gd_matcher {
    struct gd_table *a, *b;
    const struct gd_match_options *options;
    uint32_t *of_a, *of_b; /* partners; UINT32_MAX none */
    enum gd_how *how;      /* by unit of B */
    bool guessed;
};

/* What is left, between those that have partners. */
int gd_match_by_order(struct gd_matcher *m, struct gd_err *err);
/* As many of these units as can be, in their order: they are alike in shape and operator. */
int gd_align(struct gd_matcher *m, const uint32_t *a, size_t count_a, const uint32_t *b,
             size_t count_b, enum gd_how how, struct gd_err *err);
/* Operators of the forward pass, by the layers that they belong to: layers.c. */
int gd_match_by_layer(struct gd_matcher *m, struct gd_err *err);

#endif
