// SPDX-License-Identifier: GPL-3.0-or-later
/* What the files of `lockstep` share: lockstep.c takes the command apart, lockstep_match.c says
 * which nodes belong together, lockstep_run.c runs and compares, lockstep_show.c tells. */
#ifndef GD_REPL_LOCKSTEP_IMPL_H
#define GD_REPL_LOCKSTEP_IMPL_H

#include "compare/compare.h"
#include "repl/compare/compare_files.h"
#include "repl/values/checked.h"
#include "repl/values/inspect.h"

enum lockstep_end { /* why it is over */
                    LOCKSTEP_GOES_ON,
                    LOCKSTEP_PARTED,  /* a tensor differs */
                    LOCKSTEP_ORDER,   /* they ran different nodes */
                    LOCKSTEP_STEPS,   /* as many as were asked for */
                    LOCKSTEP_OVER,    /* a training is over, or a dump */
                    LOCKSTEP_LOST,    /* a training broke off */
                    LOCKSTEP_STOPPED, /* something else stopped one of them */
};

struct lockstep_nodes { /* which node stands for which, by node; GD_NO_NODE none */
    gd_node_id *of_b, *of_a;
    bool *chosen; /* nodes of B that are compared */
    bool *seen;   /* those that were, in this step */
    uint32_t limit_a, limit_b;
    uint64_t generation_a, generation_b;
};

struct lockstep {
    struct command_call *call;
    struct gd_session *a, *b; /* held */
    struct gd_session *dump;  /* the one of them that is a dump, which follows the other; or NULL */
    const char *label_a, *label_b;
    struct compare_options options;
    struct gd_selector *selector; /* NULL: what is watched, else all */
    bool narrow;                  /* not all are chosen */
    bool by_node;
    int64_t steps; /* 0: until one is over */
    int64_t shift; /* A counts so many steps more than B */
    int64_t step;  /* by node: the one that they are in, as B counts */
    struct lockstep_nodes nodes;
    /* so far */
    enum lockstep_end ended;
    int64_t steps_done;
    uint64_t compared;              /* nodes */
    struct inspect_checked checked; /* tensors; values that a side could not give */
    gd_node_id good;                /* of B, the last that agreed */
    gd_node_id node_a, node_b;      /* where they parted */
    uint32_t slot;
    struct gd_difference difference;
    struct gd_session *culprit; /* whose stop or end it was */
};

/* Looks again at graphs that have grown; a node that has come since has no partner but by its name.
 * new_step: nothing of it was compared yet. */
int lockstep_match(struct lockstep *l, bool new_step, struct gd_err *err);
void lockstep_nodes_free(struct lockstep *l);
gd_node_id lockstep_partner_of_b(const struct lockstep *l, gd_node_id node);
gd_node_id lockstep_partner_of_a(const struct lockstep *l, gd_node_id node);
bool lockstep_is_chosen(const struct lockstep *l, gd_node_id node_b);

/* Both at the end of the same step; what a dump lacks, or has not come to, is no error. */
int lockstep_check_place(const struct lockstep *l, struct gd_err *err);
/* Until l->ended says why not. GD_EINTR: Ctrl-C; both stand. */
int lockstep_run(struct lockstep *l, struct gd_err *err);
/* The outputs of a node, and of its partner. */
int lockstep_compare_node(struct lockstep *l, gd_node_id node_b, struct gd_err *err);
/* What was not compared in this step. */
int lockstep_compare_rest(struct lockstep *l, struct gd_err *err);

/* GD_ENODATA: it ended without a difference, and nothing was compared. */
int lockstep_show(struct lockstep *l, struct gd_err *err);

#endif
