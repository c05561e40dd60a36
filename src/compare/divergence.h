// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Where two runs part first: matched nodes in the reference's order of execution, forward, then
 * backward, then optimizer, until an output is bad; whether its inputs were, too; what lies between
 * it and the last node that agrees.
 */
#ifndef GD_COMPARE_DIVERGENCE_H
#define GD_COMPARE_DIVERGENCE_H

#include "compare/compare.h"
#include "compare/match.h"

enum gd_origin {
    GD_ORIGIN_NONE,      /* nothing differs */
    GD_ORIGIN_HERE,      /* all inputs agree: the operator itself differs */
    GD_ORIGIN_INHERITED, /* an input is bad, and who made it cannot be looked at */
    GD_ORIGIN_UNKNOWN,   /* its inputs were not dumped */
};
const char *gd_origin_name(enum gd_origin origin); /* "ORIGIN", "INHERITED", "UNKNOWN-IN" */

struct gd_amplified { /* agrees, but is far less close than what it was made of */
    uint32_t unit;    /* of B */
    double in, out;   /* rel_l2 */
};

struct gd_divergence {
    enum gd_origin origin;
    struct gd_match at;      /* what differs first */
    struct gd_match good;    /* the last before it that agrees; b UINT32_MAX: none */
    uint32_t item_a, item_b; /* the output that is bad */
    struct gd_difference difference;
    uint32_t bad_input;          /* item of B; UINT32_MAX: none */
    size_t inputs, inputs_agree; /* that could be compared */
    uint32_t only_a; /* unit of A that makes an input of it and has no partner; UINT32_MAX none */
    size_t checked, unchecked;      /* matched nodes that were looked at before it; not (bisect) */
    uint64_t tensors, not_compared; /* outputs of these: compared; that could not be */
    uint64_t forward;               /* of those that were compared: of the forward pass */
    char why[160];                  /* the first that could not be: the reason; "" */
    size_t layer;                   /* collectives before it */
    bool collective;                /* it is one */
    const char **between;           /* names: nodes that could not be compared */
    size_t between_count, between_more;
    struct gd_amplified amplified[8];
    size_t amplified_count;
};

struct gd_divergence_options {
    enum gd_profile profile;
    bool (*tolerance)(void *ctx, const char *a, const char *b, struct gd_tolerance *ret);
    /* Makes the value of an item known, where it has to be fetched; may be NULL. */
    int (*fetch)(void *ctx, bool of_b, const struct gd_unit *unit, struct gd_item *item,
                 struct gd_err *err);
    bool (*go_on)(void *ctx, uint64_t elements);
    void *ctx;
    bool bisect; /* few nodes are looked at: what is before them stays unchecked */
    int threads;
};

int gd_divergence_find(struct gd_table *a, struct gd_table *b, const struct gd_matching *matching,
                       const struct gd_divergence_options *options, struct gd_divergence *ret,
                       struct gd_err *err);
void gd_divergence_free(struct gd_divergence *divergence);
/* The middle first, then the middles of what is left: the order in which to dump. */
void gd_middle_first(size_t count, size_t *order);
/* "AllReduce", "all_gather": ranks meet in it. */
bool gd_is_collective(const char *op);

#endif
