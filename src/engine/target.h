// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A target: the thing being debugged, behind one table of operations. A live MindSpore process, a
 * gradb.v1 trainer, a dump directory differ only in which slots they fill; an empty slot means "not
 * supported", which the gd_target_* callers turn into GD_EUNSUPPORTED with a sentence that names
 * the target's kind.
 *
 * Everything runs on the one thread of the event loop. Operations return at once; data comes back
 * through a callback, exactly once per accepted request: with a result, or with an error when the
 * target cannot answer or is lost. A callback may run before the operation returns.
 *
 * What happens on its own (connected, graph, stopped, ...) a target reports with gd_session_on_*.
 */
#ifndef GD_ENGINE_TARGET_H
#define GD_ENGINE_TARGET_H

#include "base/slice.h"
#include "base/stats.h"
#include "engine/graph/graph.h"
#include "engine/watch/expression.h"

struct gd_target; /* made and embedded by the implementation */
struct gd_session;

enum gd_run_kind {
    GD_RUN_CONTINUE, /* until something stops it */
    GD_RUN_STEP,     /* count training steps */
    GD_RUN_NEXT,     /* count nodes in execution order */
    GD_RUN_TO_NODE,  /* until `node` has executed */
    GD_RUN_FINISH,   /* to the end of the current phase (forward, backward, optimizer) */
    GD_RUN_RECHECK,  /* evaluate the watchpoints again, do not move */
    /* in a record of a training, which can go anywhere */
    GD_RUN_BACK, /* count steps back */
    GD_RUN_GOTO, /* to the step `count` */
};

struct gd_run {
    enum gd_run_kind kind;
    int64_t count;   /* STEP, NEXT, BACK: >= 1; GOTO: the step */
    gd_node_id node; /* TO_NODE: the node, or GD_NO_NODE with a name that the graph lacks */
    const char *name;
};

enum gd_iter { GD_CURRENT = 0, GD_PREVIOUS = 1 }; /* this step's value, or the step before's */

struct gd_tensor_ref {
    gd_node_id node;
    uint32_t slot;
    enum gd_iter iter;
};

/* err is NULL on success. The tensor is borrowed: take a reference to keep it. step is the training
 * step whose value it is, -1 when the target does not know. */
typedef void (*gd_tensor_fn)(void *ctx, struct gd_tensor *tensor, int64_t step,
                             const struct gd_err *err);
typedef void (*gd_stats_fn)(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                            const struct gd_stats *stats, int64_t step, const struct gd_err *err);

/* stats NULL: there was no value in that step. */
typedef bool (*gd_recall_fn)(void *ctx, int64_t step, enum gd_dtype dtype,
                             const struct gd_shape *shape, const struct gd_stats *stats);

/* A watchpoint that the training process evaluates by itself (MindSpore's SetCMD). */
struct gd_remote_param {
    const char *name;
    bool disabled;
    double value;
};
struct gd_remote_watch {
    int32_t id;                           /* 1 ... INT32_MAX */
    int condition;                        /* MindSpore's wire number */
    const struct gd_remote_param *params; /* the full list, in wire order */
    size_t param_count;
    const gd_node_id *nodes;
    size_t node_count;
};

/*
 * A plan: which statistics of which values the target computes by itself, where they lie, and
 * reports with gd_watch_on_values. Built by engine/watch/watch_plan.c, which gives each
 * tensor to one plan however many watchpoints cover it, so that it is read once.
 */
struct gd_watch_trigger {
    struct gd_comparison_of test;
    uint32_t range; /* which of the item's ranges, for figures of a range */
};
struct gd_watch_item {
    gd_node_id node;
    uint32_t slot;
    const char *scalar; /* instead of node: a named number of the step; else NULL */
    const struct gd_stats_options *options;
    bool against_previous;
    uint32_t dead_steps;                     /* 0: no dead units */
    const struct gd_watch_trigger *triggers; /* report when any holds */
    size_t trigger_count;                    /* 0: always report */
};
struct gd_watch_plan {
    uint32_t id;
    bool exact;  /* as soon as the node has run; else at the end of the step */
    bool hold;   /* wait for the verdict */
    bool record; /* also send every value once a step, without holding */
    const struct gd_watch_item *items; /* borrowed during the call */
    size_t item_count;                 /* 0: remove the plan */
};
struct gd_plan_cost {
    uint32_t plan;
    const uint64_t *item_ns, *item_runs; /* by item of the plan */
    size_t item_count;
    uint64_t wait_ns, reports, report_bytes;
};
/* The words that the training program answers a command with; text is borrowed. */
typedef void (*gd_command_fn)(void *ctx, const char *text, const struct gd_err *err);
typedef void (*gd_watch_costs_fn)(void *ctx, const struct gd_plan_cost *costs, size_t count,
                                  const struct gd_err *err);

/* Values that do not outlive the operator that makes them, copied as soon as it has run. */
struct gd_capture {
    const gd_node_id *nodes; /* known now; borrowed during the call */
    size_t count;
    bool all;                      /* also of nodes that are still to come */
    int64_t first_step, last_step; /* only in these */
    uint64_t max_bytes;            /* of one step's copies; 0: what the target sees fit */
};

/* Bits of gd_target.capabilities */
enum gd_capability {
    GD_CAN_STEP = 1 << 0,
    GD_CAN_NEXT = 1 << 1,
    GD_CAN_INTERRUPT = 1 << 2,
    GD_CAN_FETCH = 1 << 3,
    GD_CAN_STATS = 1 << 4,
    GD_CAN_PREVIOUS = 1 << 5,
    GD_CAN_DETACH = 1 << 6, /* the training goes on without us */
    GD_CAN_KILL = 1 << 7,
    GD_CAN_WATCH_REMOTE = 1 << 8,
    GD_CAN_FINISH = 1 << 9,
    GD_CAN_CHECKPOINT = 1 << 10,
    GD_CAN_WATCH = 1 << 11,        /* watch_plan: at the end of the step */
    GD_CAN_WATCH_EXACT = 1 << 12,  /* before the next node runs */
    GD_CAN_WATCH_SCALAR = 1 << 13, /* items with a scalar */
    GD_CAN_COMMAND = 1 << 14,
    GD_CAN_INTERRUPT_AT = 1 << 15, /* interrupt_at */
    GD_CAN_GROW = 1 << 18,         /* nodes come as the program runs them: expect */
    GD_CAN_DIGEST = 1 << 19,       /* the command "digest", whatever else it can be asked */
    GD_CAN_CAPTURE = 1 << 20,
    GD_CAN_GOTO = 1 << 16, /* it is a record: BACK, GOTO; ranks do not wait for each other */
};

struct gd_target_ops {
    const char *kind; /* "mindspore", "gradb.v1" */
    int (*resume)(struct gd_target *target, const struct gd_run *run, struct gd_err *err);
    /* Stop as soon as possible; the stop is reported later. */
    int (*interrupt)(struct gd_target *target, struct gd_err *err);
    /* Stop at the end of this step, or of the first one after it that is not over yet; asked while
     * it stands, of the run that follows. It stands until then, whatever stops come before; 0 takes
     * it back. */
    int (*interrupt_at)(struct gd_target *target, int64_t step, struct gd_err *err);
    /* Something that only the training program knows how to do: "overflow", "rerun", ...; args is
     * not NULL, node may be GD_NO_NODE. Only while stopped; one that runs on is answered with
     * GD_ESTATE. */
    int (*command)(struct gd_target *target, const char *name, const char *args, gd_node_id node,
                   gd_command_fn fn, void *ctx, struct gd_err *err);
    /* Replaces the set of nodes whose completion stops the run. */
    int (*set_breakpoints)(struct gd_target *target, const gd_node_id *nodes, size_t count,
                           struct gd_err *err);
    /* Of a graph that grows as the program runs: a new node whose name contains one of these is
     * wanted at once; with not_finite also one whose first value is not finite. Replaces the set;
     * NULL where graphs do not grow. */
    int (*expect)(struct gd_target *target, char *const *parts, size_t count, bool not_finite,
                  struct gd_err *err);
    /* slice NULL or empty: the whole tensor. */
    int (*fetch)(struct gd_target *target, const struct gd_tensor_ref *ref,
                 const struct gd_slice *slice, gd_tensor_fn fn, void *ctx, struct gd_err *err);
    int (*stats)(struct gd_target *target, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                 void *ctx, struct gd_err *err);
    /* Nodes whose previous-step value shall be kept from now on (replaces the set). */
    int (*keep_previous)(struct gd_target *target, const gd_node_id *nodes, size_t count,
                         struct gd_err *err);
    /* Replaces what is copied; NULL: nothing any more. A target that does not know of steps copies
     * from now on until it is told otherwise. */
    int (*capture)(struct gd_target *target, const struct gd_capture *capture, struct gd_err *err);
    int (*watch)(struct gd_target *target, const struct gd_remote_watch *watch, struct gd_err *err);
    int (*unwatch)(struct gd_target *target, int32_t id, struct gd_err *err);
    /* Adds, replaces or removes one plan. Whatever was set is gone when the target is. */
    int (*watch_plan)(struct gd_target *target, const struct gd_watch_plan *plan,
                      struct gd_err *err);
    /* What the plans have cost since they were set; also while the training runs. */
    int (*watch_costs)(struct gd_target *target, gd_watch_costs_fn fn, void *ctx,
                       struct gd_err *err);
    int (*checkpoint)(struct gd_target *target, struct gd_err *err); /* ask the trainer to save */
    /* Graphs whose taking in was interrupted are taken in after all, while the loop runs.
     * GD_ENODATA: there are none. */
    int (*take_graphs)(struct gd_target *target, struct gd_err *err);
    int (*detach)(struct gd_target *target, struct gd_err *err);
    int (*kill)(struct gd_target *target, struct gd_err *err); /* ask the trainer to end */
    /* Of a record: hands over the statistics of all its steps, in rising order, until fn says
     * false. GD_ENODATA: there are none. */
    int (*recall)(struct gd_target *target, const struct gd_tensor_ref *ref, gd_recall_fn fn,
                  void *ctx, struct gd_err *err);
    /* Goes on with what takes long for about so many seconds, as long as the session runs; called
     * again and again by who has the loop. NULL: it comes by itself. */
    void (*work)(struct gd_target *target, double seconds);
    /* Facts of the target for `info target`, one call per fact. */
    void (*describe)(struct gd_target *target,
                     void (*fact)(void *ctx, const char *name, const char *value), void *ctx);
    void (*destroy)(struct gd_target *target); /* drops the connection, if any, without ceremony */
};

struct gd_target {
    const struct gd_target_ops *ops;
    struct gd_session *session; /* set by gd_session_create */
    unsigned capabilities;
    struct gd_target *next_dead; /* private to the debugger: waits for gd_debugger_reap */
};

/* Each forwards to the slot or fails with GD_EUNSUPPORTED; GD_ESTATE when the session's state does
 * not allow it (resume and fetch want a stop; interrupt wants a run). */
int gd_target_resume(struct gd_target *target, const struct gd_run *run, struct gd_err *err);
int gd_target_interrupt(struct gd_target *target, struct gd_err *err);
int gd_target_interrupt_at(struct gd_target *target, int64_t step, struct gd_err *err);
int gd_target_command(struct gd_target *target, const char *name, const char *args, gd_node_id node,
                      gd_command_fn fn, void *ctx, struct gd_err *err);
int gd_target_set_breakpoints(struct gd_target *target, const gd_node_id *nodes, size_t count,
                              struct gd_err *err);
int gd_target_fetch(struct gd_target *target, const struct gd_tensor_ref *ref,
                    const struct gd_slice *slice, gd_tensor_fn fn, void *ctx, struct gd_err *err);
int gd_target_stats(struct gd_target *target, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                    void *ctx, struct gd_err *err);
int gd_target_keep_previous(struct gd_target *target, const gd_node_id *nodes, size_t count,
                            struct gd_err *err);
int gd_target_capture(struct gd_target *target, const struct gd_capture *capture,
                      struct gd_err *err);
int gd_target_watch(struct gd_target *target, const struct gd_remote_watch *watch,
                    struct gd_err *err);
int gd_target_unwatch(struct gd_target *target, int32_t id, struct gd_err *err);
int gd_target_watch_plan(struct gd_target *target, const struct gd_watch_plan *plan,
                         struct gd_err *err);
int gd_target_watch_costs(struct gd_target *target, gd_watch_costs_fn fn, void *ctx,
                          struct gd_err *err);
int gd_target_checkpoint(struct gd_target *target, struct gd_err *err);
int gd_target_take_graphs(struct gd_target *target, struct gd_err *err);
int gd_target_detach(struct gd_target *target, struct gd_err *err);
int gd_target_kill(struct gd_target *target, struct gd_err *err);

#endif
