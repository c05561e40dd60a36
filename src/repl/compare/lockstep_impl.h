// SPDX-License-Identifier: GPL-3.0-or-later
/* What the files of `lockstep` share: lockstep.c parses the command, lockstep_match.c matches
 * nodes, lockstep_run.c runs and compares, lockstep_show.c reports. */
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
                    LOCKSTEP_STEPS,   /* the requested number of steps was run */
                    LOCKSTEP_OVER,    /* a training or a dump has ended */
                    LOCKSTEP_LOST,    /* a training was lost */
                    LOCKSTEP_STOPPED, /* one of them stopped for another reason */
};

struct lockstep_nodes { /* the counterpart of each node; GD_NO_NODE: none */
    gd_node_id *of_b, *of_a;
    bool *chosen; /* nodes of B to be compared */
    bool *seen;   /* those compared in this step */
    uint32_t limit_a, limit_b;
    uint64_t generation_a, generation_b;
};

struct lockstep_held { /* outputs of one side's step, in the order in which they were made */
    struct lockstep_value {
        gd_node_id node;
        uint32_t slot;
        struct gd_source *source;
    } * list;
    size_t count, room;
    size_t at; /* where the next one is looked for first */
    struct gd_session *session;
    uint64_t bytes;
};

struct lockstep {
    struct command_call *call;
    struct gd_session *a, *b; /* held */
    struct gd_session *dump;  /* the side that is a dump, which follows the other; NULL: none */
    const char *label_a, *label_b;
    struct compare_options options;
    struct gd_selector *selector; /* NULL: watched nodes, else all */
    bool narrow;                  /* a subset of the nodes is chosen */
    bool by_node;
    int64_t steps; /* 0: until one ends */
    int64_t shift; /* A's step count minus B's */
    int64_t step;  /* by node: the current step, as B counts */
    struct lockstep_nodes nodes;
    struct lockstep_held held;
    /* so far */
    enum lockstep_end ended;
    int64_t steps_done;
    uint64_t compared;              /* nodes */
    struct inspect_checked checked; /* tensors compared; values that a side lacks */
    gd_node_id good;                /* node of B that agreed last */
    gd_node_id node_a, node_b;      /* where they diverged */
    uint32_t slot;
    struct gd_difference difference;
    struct gd_session *culprit; /* the session that stopped or ended */
};

/* Matches again after a graph has grown; new nodes are matched by name only. new_step: nothing of
 * the step was compared yet. */
int lockstep_match(struct lockstep *l, bool new_step, struct gd_err *err);
void lockstep_nodes_free(struct lockstep *l);
gd_node_id lockstep_partner_of_b(const struct lockstep *l, gd_node_id node);
gd_node_id lockstep_partner_of_a(const struct lockstep *l, gd_node_id node);
bool lockstep_is_chosen(const struct lockstep *l, gd_node_id node_b);

/* Both must be at the end of the same step; a step that a dump lacks or has not reached is not an
 * error. */
int lockstep_check_place(const struct lockstep *l, struct gd_err *err);
/* Runs until l->ended says why it ended. GD_EINTR: Ctrl-C; both are stopped. */
int lockstep_run(struct lockstep *l, struct gd_err *err);

/* GD_ENODATA: it ended without a difference, but nothing was compared. */
int lockstep_show(struct lockstep *l, struct gd_err *err);

#endif
