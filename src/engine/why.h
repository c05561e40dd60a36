// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Why a value is bad: from a tensor upstream through its inputs, forward and backward, and through
 * parameters into the steps before, to the first node in execution order whose output is bad while
 * its inputs are good; and what happened there, in words, by a table of rules over operator types
 * and the statistics of inputs and outputs. Asks the session for statistics; nothing is fetched
 * whole.
 */
#ifndef GD_ENGINE_WHY_H
#define GD_ENGINE_WHY_H

#include "engine/session.h"

enum gd_bad { /* what is looked for */
              GD_BAD_NONFINITE,
              GD_BAD_LARGE, /* far larger than in the steps before, or than its inputs account for
                             */
              GD_BAD_ZERO,  /* all zero */
};

enum gd_why_verdict {
    GD_WHY_GOOD,
    GD_WHY_BAD,
    GD_WHY_UNKNOWN, /* no value of this step: not run yet, not captured, no statistics */
};

struct gd_why_node { /* a node of the tree, in the order of printing */
    gd_node_id node;
    uint32_t slot;
    int depth; /* below the node that was asked about, which has 0 */
    enum gd_why_verdict verdict;
    bool shown_above; /* its inputs are listed where it occurred first */
    bool origin;      /* the first bad one whose inputs are good */
    bool has_stats;
    struct gd_stats stats;
    int64_t value_step;
    char note[96]; /* "12 NaN", "max 6.5e4", "not computed yet in this step" */
};

struct gd_why {
    enum gd_bad bad;
    struct gd_why_node *nodes; /* the tree */
    size_t count;
    gd_node_id origin; /* GD_NO_NODE: not found; `text` says as far as it is known */
    uint32_t origin_slot;
    int64_t since;   /* the step since which it is bad; -1 unknown */
    char rule[32];   /* "log-of-zero", "fp16-range", "bad-batch", ...; "" when no rule fits */
    char text[1024]; /* what happened, in sentences */
    bool cut;        /* the walk was ended by its limit */
};

/* fn runs once, with the answer (borrowed) or with an error. GD_ENOTFOUND, GD_ESTATE. */
typedef void (*gd_why_fn)(void *ctx, const struct gd_why *why, const struct gd_err *err);
int gd_why_ask(struct gd_session *session, gd_node_id node, uint32_t slot, enum gd_bad bad,
               gd_why_fn fn, void *ctx, struct gd_err *err);
/* What a hit of that condition makes one look for. */
enum gd_bad gd_why_of_hit(const struct gd_hit *hit);

#endif
