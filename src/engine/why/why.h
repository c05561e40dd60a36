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
              GD_BAD_LARGE,  /* far larger than in the steps before, or than its inputs account for
                              */
              GD_BAD_ZERO,   /* all zero; of a weight also: it does not move */
              GD_BAD_SMALL,  /* a gradient that is less than it was on its way from the loss */
              GD_BAD_RAISED, /* it has no value: the operator failed */
};

#define GD_WHY_EXITS 32
#define GD_WHY_NAMED 4

/* Gradients of the parameters that the main optimizer holds, of one kind. */
struct gd_why_gradients {
    int64_t count;
    char name[GD_WHY_NAMED][128]; /* of the first of those parameters */
    int named;
};

/* What the training program itself told of the value that is asked about; all 0: nothing. */
struct gd_why_facts {
    bool fired;        /* a watchpoint or catchpoint says that it is wrong */
    bool told;         /* a number of the program says that it is not finite */
    bool of_parameter; /* it is a parameter, its gradient or its update, and the next are known: */
    char parameter[256];
    bool frozen;         /* no gradient is wanted of it */
    bool has_gradient;   /* there is one now */
    bool gradient_moves; /* and it is known that it is not all 0 */
    char optimizer[64];  /* that holds it; "" none */
    int optimizers;      /* how many there are */
    bool has_rate;       /* of that optimizer, for it: */
    double rate;
    int64_t followed;       /* the last step whose operators were all told of; 0: not known */
    int64_t piled_up_since; /* the first step whose gradients lie on those before; 0: they do not */
    char piled_up_in[256];  /* a parameter that shows it */
    char piled_up_by[64];   /* the optimizer that steps it; "" the main one */
    char raised[160];       /* what the operator that failed said; "" none did */
    char numbers[256];      /* of one that picks by numbers: the node of those; "" */
    char place[64];         /* of the first that is out of range: "[3, 0]" */
    char loss[256]; /* the operator that the last backward pass began at that was looked at; "" */
    int64_t number, choices; /* that number, and how many there are to pick from */
    int64_t axis;            /* along which they are picked */
    bool from_end;           /* numbers below 0 count from the end */
    bool listed;             /* the numbers were a list in the program's code, and are no node */
    bool apart;              /* it is not the same on all ranks: */
    int apart_rank;          /* the first that has another */
    enum gd_why_agreement { GD_WHY_NOT_KNOWN, GD_WHY_SAME, GD_WHY_DIFFERS } apart_gradient;
    char scalar[64];      /* the number of the training that is asked about: "loss"; "" none */
    bool has_stepped;     /* it is known when `optimizer` stepped last: */
    int64_t stepped;      /* in this step; 0: not yet */
    double scale;         /* what gradients are multiplied by now; 0 or 1: by nothing */
    int64_t skipped;      /* the last step whose update GradScaler left out; 0 none */
    char skipped_of[64];  /* the optimizer of that update */
    char lost[256];       /* a parameter whose gradient is gone when the optimizer steps; "" */
    char lost_of[64];     /* that optimizer */
    char main[64];        /* the main optimizer; "": the next four are not known */
    int64_t held, looked; /* parameters that it holds, and whose gradient was looked at */
    struct gd_why_gradients none, zero, nonfinite;
    struct gd_why_exit { /* where a result became a number or an array of the program */
        char node[160], by[16], line[80];
    } exits[GD_WHY_EXITS];
    int exit_count;
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

/* facts: copied; NULL: nothing is known but graph and values. fn runs once, with the answer
 * (borrowed) or with an error. GD_ENOTFOUND, GD_ESTATE. */
typedef void (*gd_why_fn)(void *ctx, const struct gd_why *why, const struct gd_err *err);
int gd_why_ask(struct gd_session *session, gd_node_id node, uint32_t slot, enum gd_bad bad,
               const struct gd_why_facts *facts, gd_why_fn fn, void *ctx, struct gd_err *err);
/* The operator whose scalar result the backward pass began at; GD_NO_NODE: it is not known. What
 * the program told (facts, or NULL) goes before the first such operator of the graph: a loss need
 * not be made in the same way in each step. */
gd_node_id gd_why_loss(const struct gd_graph *graph, const struct gd_why_facts *facts);
/* What a hit of that condition makes one look for. */
enum gd_bad gd_why_of_hit(const struct gd_hit *hit);

#endif
