// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Finds where two runs first diverge: compares matched nodes in the reference's execution order
 * (forward, backward, optimizer) until an output is bad; says whether its inputs were bad too, and
 * which nodes are between it and the last node that agrees.
 */
#ifndef GD_COMPARE_DIVERGENCE_H
#define GD_COMPARE_DIVERGENCE_H

#include "compare/compare.h"
#include "compare/match.h"

enum gd_origin {
    GD_ORIGIN_NONE,      /* no difference */
    GD_ORIGIN_HERE,      /* all inputs agree: the operator itself differs */
    GD_ORIGIN_INHERITED, /* an input is bad, and its producer cannot be checked */
    GD_ORIGIN_UNKNOWN,   /* its inputs were not dumped */
};
const char *gd_origin_name(enum gd_origin origin); /* "ORIGIN", "INHERITED", "UNKNOWN-IN" */

struct gd_amplified { /* agrees, but is much less close than its inputs */
    uint32_t unit;    /* of B */
    double in, out;   /* rel_l2 */
};

struct gd_divergence {
    enum gd_origin origin;
    struct gd_match at;      /* the first difference */
    struct gd_match good;    /* the last one before it that agrees; b UINT32_MAX: none */
    uint32_t item_a, item_b; /* the bad output */
    struct gd_difference difference;
    uint32_t bad_input;          /* item of B; UINT32_MAX: none */
    size_t inputs, inputs_agree; /* number that could be compared */
    /* unit of A that produces one of its inputs and has no partner; UINT32_MAX: none */
    uint32_t only_a;
    size_t checked, unchecked; /* matched nodes before it that were checked, and not (bisect) */
    uint64_t tensors, not_compared; /* outputs of these that were compared, and that could not be */
    uint64_t forward;               /* those of the forward pass among the compared */
    char why[160];                  /* why the first of them could not be compared; "" */
    size_t layer;                   /* number of collectives before it */
    bool collective;                /* it is one */
    const char **between;           /* names of nodes that could not be compared */
    size_t between_count, between_more;
    struct gd_amplified amplified[8];
    size_t amplified_count;
};

struct gd_divergence_options {
    enum gd_profile profile;
    bool (*tolerance)(void *ctx, const char *a, const char *b, struct gd_tolerance *ret);
    /* Fetches the value of an item if necessary; may be NULL. */
    int (*fetch)(void *ctx, bool of_b, const struct gd_unit *unit, struct gd_item *item,
                 struct gd_err *err);
    bool (*go_on)(void *ctx, uint64_t elements);
    void *ctx;
    bool bisect; /* check few nodes; earlier ones stay unchecked */
    int threads;
};

int gd_divergence_find(struct gd_table *a, struct gd_table *b, const struct gd_matching *matching,
                       const struct gd_divergence_options *options, struct gd_divergence *ret,
                       struct gd_err *err);
void gd_divergence_free(struct gd_divergence *divergence);
/* Orders by bisection (the middle, then the middles of the halves): the order in which to dump. */
void gd_middle_first(size_t count, size_t *order);

#endif
