// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Why a value is bad: from a tensor upstream through its inputs, forward and backward, and through
 * parameters into earlier steps, to the first node in execution order whose output is bad while its
 * inputs are good; and what happened there, in words, from a table of rules over operator types and
 * the statistics of inputs and outputs. Asks the session for statistics; nothing is fetched whole.
 */
#ifndef GD_ENGINE_WHY_H
#define GD_ENGINE_WHY_H

#include "engine/session.h"

enum gd_bad { /* what is looked for */
              GD_BAD_NONFINITE,
              GD_BAD_LARGE,  /* far larger than in previous steps, or than its inputs explain */
              GD_BAD_ZERO,   /* all zero; for a weight also: it does not change */
              GD_BAD_SMALL,  /* a gradient that shrank on its way from the loss */
              GD_BAD_RAISED, /* it has no value: the operator failed */
};

#define GD_WHY_EXITS 32
#define GD_WHY_NAMED 4

/* Gradients of the main optimizer's parameters, of one kind. */
struct gd_why_gradients {
    int64_t count;
    char name[GD_WHY_NAMED][128]; /* of the first of those parameters */
    int named;
};

/* What the training process itself reported about the value in question; all 0: nothing. */
struct gd_why_facts {
    bool fired; /* a watchpoint or catchpoint says that it is wrong */
    bool told;  /* a metric says that it is not finite */
    /* it is a parameter, its gradient or its update, and the following are known: */
    bool of_parameter;
    char parameter[256];
    bool frozen;         /* it wants no gradient */
    bool has_gradient;   /* it has one now */
    bool gradient_moves; /* and it is known not to be all 0 */
    char optimizer[64];  /* the one that holds it; "" none */
    int optimizers;      /* how many there are */
    bool has_rate;       /* of that optimizer, for it: */
    double rate;
    int64_t followed;       /* the last step whose operators were all reported; 0: unknown */
    int64_t piled_up_since; /* the first step whose gradients were added to earlier ones; 0: none */
    char piled_up_in[256];  /* a parameter that shows it */
    char piled_up_by[64];   /* the optimizer that updates it; "" the main one */
    char raised[160];       /* what the failed operator reported; "" none failed */
    char numbers[256];      /* of an indexing operator: the node of its indices; "" */
    char place[64];         /* of the first index out of range: "[3, 0]" */
    char loss[256];         /* the examined operator where the last backward pass began; "" */
    int64_t number, choices; /* that index, and the number of choices */
    int64_t axis;            /* along this axis */
    bool from_end;           /* negative indices count from the end */
    bool listed;             /* the indices were a list in the program's code, not a node */
    bool apart;              /* it differs between ranks: */
    int apart_rank;          /* the first that differs */
    enum gd_why_agreement { GD_WHY_NOT_KNOWN, GD_WHY_SAME, GD_WHY_DIFFERS } apart_gradient;
    char scalar[64];      /* the metric in question: "loss"; "" none */
    bool has_stepped;     /* it is known when `optimizer` last stepped: */
    int64_t stepped;      /* in this step; 0: not yet */
    double scale;         /* the current gradient scale; 0 or 1: none */
    char scaler[64];      /* what skips and scales; "": GradScaler, if anything */
    int64_t skipped;      /* the last step whose update it skipped; 0 none */
    char skipped_of[64];  /* the optimizer of that update */
    char lost[256];       /* a parameter whose gradient is gone when the optimizer steps; "" */
    char lost_of[64];     /* that optimizer */
    char main[64];        /* the main optimizer; "": the next four are unknown */
    int64_t held, looked; /* its parameters, and those whose gradient was examined */
    struct gd_why_gradients none, zero, nonfinite;
    struct gd_why_exit { /* where a result became a plain number or an array */
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
    int depth; /* below the node in question, which has 0 */
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
    gd_node_id origin; /* GD_NO_NODE: not found; `text` says what is known */
    uint32_t origin_slot;
    int64_t since;   /* the step since which it is bad; -1 unknown */
    char rule[32];   /* "log-of-zero", "fp16-range", "bad-batch", ...; "" when no rule fits */
    char text[1024]; /* what happened, in sentences */
    bool cut;        /* the walk was ended by its limit */
};

struct gd_why_rule {
    const char *name;   /* as in gd_why.rule */
    const char *text;   /* what it finds */
    const char *inputs; /* what it is based on */
};
/* All rules, by name; one without a name ends them. */
const struct gd_why_rule *gd_why_rules(void);

/* facts: copied; NULL: only the graph and values are known. fn runs once, with the answer
 * (borrowed) or with an error. GD_ENOTFOUND, GD_ESTATE. */
typedef void (*gd_why_fn)(void *ctx, const struct gd_why *why, const struct gd_err *err);
int gd_why_ask(struct gd_session *session, gd_node_id node, uint32_t slot, enum gd_bad bad,
               const struct gd_why_facts *facts, gd_why_fn fn, void *ctx, struct gd_err *err);
/* The operator whose scalar result started the backward pass; GD_NO_NODE: unknown. What the process
 * reported (facts, or NULL) takes precedence over the first such operator of the graph: a loss need
 * not be computed the same way in each step. */
gd_node_id gd_why_loss(const struct gd_graph *graph, const struct gd_why_facts *facts);
/* What to look for after a hit of that condition. */
enum gd_bad gd_why_of_hit(const struct gd_hit *hit);

#endif
