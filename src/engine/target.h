// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A target: what is being debugged, as one table of operations. A live MindSpore process, a
 * gradb.v1 process and a dump directory differ only in the slots they fill; an empty slot means
 * "not supported", which the gd_target_* callers turn into GD_EUNSUPPORTED with a sentence that
 * names the target's kind. Everything runs on the thread of the event loop. Operations return at
 * once; data comes through a callback, exactly once per accepted request: with a result, or with an
 * error when the target cannot answer or is lost. A callback may run before the operation returns.
 * A target reports its own events (connected, graph, stopped, ...) with gd_session_on_*.
 */
#ifndef GD_ENGINE_TARGET_H
#define GD_ENGINE_TARGET_H

#include "base/slice.h"
#include "base/stats.h"
#include "engine/graph/graph.h"
#include "engine/watch/expression.h"

struct gd_target; /* created and embedded by the implementation */
struct gd_session;
struct gd_memory; /* engine/memory/memory.h */

enum gd_run_kind {
    GD_RUN_CONTINUE, /* until something stops it */
    GD_RUN_STEP,     /* count training steps */
    GD_RUN_NEXT,     /* count nodes in execution order */
    GD_RUN_TO_NODE,  /* until `node` has executed */
    GD_RUN_FINISH,   /* to the end of the current phase (forward, backward, optimizer) */
    GD_RUN_RECHECK,  /* evaluate the watchpoints again, do not move */
    /* in a record, which can go anywhere */
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

/* err is NULL on success. The tensor is borrowed: take a reference to keep it. step: the training
 * step of the value, -1 if the target does not know. */
typedef void (*gd_tensor_fn)(void *ctx, struct gd_tensor *tensor, int64_t step,
                             const struct gd_err *err);
typedef void (*gd_stats_fn)(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                            const struct gd_stats *stats, int64_t step, const struct gd_err *err);

/* stats NULL: there was no value in that step. */
typedef bool (*gd_recall_fn)(void *ctx, int64_t step, enum gd_dtype dtype,
                             const struct gd_shape *shape, const struct gd_stats *stats);

/* A watchpoint that the training process evaluates itself (MindSpore's SetCMD). */
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
 * A plan: which statistics of which values the target computes where the values are, and reports
 * with gd_watch_on_values. Built by engine/watch/watch_plan.c, which puts each tensor into one plan
 * however many watchpoints cover it, so that it is read only once.
 */
#define GD_WATCH_BINS 40
struct gd_watch_trigger {
    struct gd_comparison_of test;
    uint32_t range; /* which of the item's ranges, for statistics over a range */
};
struct gd_watch_item {
    gd_node_id node;
    uint32_t slot;
    const char *scalar; /* instead of a node: a metric of the step; else NULL */
    const struct gd_stats_options *options;
    bool against_previous;
    uint32_t dead_steps; /* 0: no dead units */
    bool bins;           /* also GD_WATCH_BINS equal bins of its own range, for the history */
    const struct gd_watch_trigger *triggers; /* report when any holds */
    size_t trigger_count;                    /* 0: always report */
};
struct gd_watch_plan {
    uint32_t id;
    bool exact;  /* as soon as the node has run; else at the end of the step */
    bool hold;   /* hold the process until the verdict */
    bool record; /* also send every value once per step, without holding */
    bool more;   /* takes effect together with the next plan: an item moves between them */
    const struct gd_watch_item *items; /* borrowed during the call */
    size_t item_count;                 /* 0: remove the plan */
};
struct gd_plan_cost {
    uint32_t plan;
    const uint64_t *item_ns, *item_runs; /* by item of the plan */
    size_t item_count;
    uint64_t wait_ns, reports, report_bytes;
};
/* The training process's answer to a command; the text is borrowed. */
typedef void (*gd_command_fn)(void *ctx, const char *text, const struct gd_err *err);
typedef void (*gd_watch_costs_fn)(void *ctx, const struct gd_plan_cost *costs, size_t count,
                                  const struct gd_err *err);

/* Values that do not outlive the operator that computes them, copied as soon as it has run. */
struct gd_capture {
    const gd_node_id *nodes; /* known now; borrowed during the call */
    size_t count;
    bool all;                      /* also of nodes that do not exist yet */
    int64_t first_step, last_step; /* only in these steps */
    uint64_t max_bytes;            /* bytes for the copies of one step; 0: the target decides */
};

/* Bits of gd_target.capabilities */
enum gd_capability {
    GD_CAN_STEP = 1 << 0,
    GD_CAN_NEXT = 1 << 1,
    GD_CAN_INTERRUPT = 1 << 2,
    GD_CAN_FETCH = 1 << 3,
    GD_CAN_STATS = 1 << 4,
    GD_CAN_PREVIOUS = 1 << 5,
    GD_CAN_DETACH = 1 << 6, /* the training can continue without gradb */
    GD_CAN_KILL = 1 << 7,
    GD_CAN_WATCH_REMOTE = 1 << 8,
    GD_CAN_FINISH = 1 << 9,
    GD_CAN_CHECKPOINT = 1 << 10,
    GD_CAN_WATCH = 1 << 11,        /* watch_plan: at the end of the step */
    GD_CAN_WATCH_EXACT = 1 << 12,  /* before the next node runs */
    GD_CAN_WATCH_SCALAR = 1 << 13, /* items with a scalar */
    GD_CAN_COMMAND = 1 << 14,
    GD_CAN_INTERRUPT_AT = 1 << 15, /* interrupt_at */
    GD_CAN_GROW = 1 << 18,         /* nodes appear as the program runs them: expect */
    GD_CAN_DIGEST = 1 << 19,       /* the command "digest" */
    GD_CAN_METRIC = 1 << 24,       /* the command "metric" */
    GD_CAN_METRIC_RANKS = 1 << 25, /* gd_session_on_metric_part */
    GD_CAN_CAPTURE = 1 << 20,
    GD_CAN_EVENTS = 1 << 21,      /* set_events */
    GD_CAN_EVENT_TERMS = 1 << 27, /* tests with terms */
    GD_CAN_LINES = 1 << 29,       /* set_lines */
    GD_CAN_WATCH_BINS = 1 << 30,  /* items with bins */
    GD_CAN_GOTO = 1 << 16,        /* it is a record: BACK, GOTO; ranks do not wait for each other */
};

/* An event of the training at which the target waits for gd_session_on_happening. */
struct gd_event_wish {
    const char *kind;
    int64_t every;                  /* of steps: those with a number that it divides */
    const struct gd_test_of *tests; /* only when one of them holds; none: always */
    size_t test_count;
};

struct gd_line_wish { /* of a breakpoint at a line: engine/line/line.h */
    int number;
    const char *file;
    uint32_t line;
    const char *function;
};

/* Nodes that may come, and are waited for. */
struct gd_expected {
    char *const *parts; /* a new node whose name contains one of them is sent at once */
    size_t count;
    bool not_finite; /* so is one whose first value is not finite */
    bool at_end;     /* others are watched, too, at the end of steps */
};

struct gd_target_ops {
    const char *kind; /* "mindspore", "gradb.v1" */
    int (*resume)(struct gd_target *target, const struct gd_run *run, struct gd_err *err);
    /* Stop as soon as possible; the stop is reported later. */
    int (*interrupt)(struct gd_target *target, struct gd_err *err);
    /* Stop at the end of this step, or of the first later one that is not over yet; while stopped,
     * it applies to the next run. It holds until it is reached, whatever stops come before; 0
     * cancels it. */
    int (*interrupt_at)(struct gd_target *target, int64_t step, struct gd_err *err);
    /* Something that only the training process can do: "overflow", "rerun", ...; args is not NULL,
     * node may be GD_NO_NODE. Only while stopped: a running process answers GD_ESTATE. */
    int (*command)(struct gd_target *target, const char *name, const char *args, gd_node_id node,
                   gd_command_fn fn, void *ctx, struct gd_err *err);
    /* Replaces the set of nodes whose completion stops the run. */
    int (*set_breakpoints)(struct gd_target *target, const gd_node_id *nodes, size_t count,
                           struct gd_err *err);
    /* Replaces the events at which the target waits. */
    int (*set_events)(struct gd_target *target, const struct gd_event_wish *wishes, size_t count,
                      struct gd_err *err);
    /* Replaces the lines before which the run stops. Each is answered with
     * gd_session_on_line_place. */
    int (*set_lines)(struct gd_target *target, const struct gd_line_wish *wishes, size_t count,
                     struct gd_err *err);
    /* After GD_VERDICT_LATER: the verdict on the event. */
    void (*event_verdict)(struct gd_target *target, bool stop);
    /* For a graph that grows as the program runs. Replaces what was expected; NULL where graphs do
     * not grow. */
    int (*expect)(struct gd_target *target, const struct gd_expected *expected, struct gd_err *err);
    /* slice NULL or empty: the whole tensor. */
    int (*fetch)(struct gd_target *target, const struct gd_tensor_ref *ref,
                 const struct gd_slice *slice, gd_tensor_fn fn, void *ctx, struct gd_err *err);
    int (*stats)(struct gd_target *target, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                 void *ctx, struct gd_err *err);
    /* Nodes whose previous-step value to keep from now on (replaces the set). */
    int (*keep_previous)(struct gd_target *target, const gd_node_id *nodes, size_t count,
                         struct gd_err *err);
    /* Replaces what is copied; NULL: nothing. A target that does not know steps copies from now on
     * until told otherwise. */
    int (*capture)(struct gd_target *target, const struct gd_capture *capture, struct gd_err *err);
    int (*watch)(struct gd_target *target, const struct gd_remote_watch *watch, struct gd_err *err);
    int (*unwatch)(struct gd_target *target, int32_t id, struct gd_err *err);
    /* Adds, replaces or removes one plan. All plans are gone when the target is. */
    int (*watch_plan)(struct gd_target *target, const struct gd_watch_plan *plan,
                      struct gd_err *err);
    /* What the plans have cost since they were set; also while the training runs. */
    int (*watch_costs)(struct gd_target *target, gd_watch_costs_fn fn, void *ctx,
                       struct gd_err *err);
    int (*checkpoint)(struct gd_target *target, struct gd_err *err); /* ask the trainer to save */
    /* Resumes adding graphs whose adding was interrupted, while the loop runs. GD_ENODATA: there
     * are none. */
    int (*take_graphs)(struct gd_target *target, struct gd_err *err);
    int (*detach)(struct gd_target *target, struct gd_err *err);
    int (*kill)(struct gd_target *target, struct gd_err *err); /* ask the trainer to end */
    /* Ask it to leave its training loop once it is resumed. */
    int (*end_training)(struct gd_target *target, struct gd_err *err);
    /* Of a record: passes the statistics of all its steps, in ascending order, until fn returns
     * false. GD_ENODATA: there are none. */
    int (*recall)(struct gd_target *target, const struct gd_tensor_ref *ref, gd_recall_fn fn,
                  void *ctx, struct gd_err *err);
    /* Who holds the memory, as a record says; the report is initialised, the caller sorts it. NULL,
     * GD_ENODATA: ask the training process, or judge by the graph. */
    int (*memory)(struct gd_target *target, struct gd_memory *report, struct gd_err *err);
    /* Does long work for about that many seconds while the session runs; called repeatedly by the
     * owner of the loop. NULL: not needed. */
    void (*work)(struct gd_target *target, double seconds);
    /* Facts of the target for `info target`, one call per fact. */
    void (*describe)(struct gd_target *target,
                     void (*fact)(void *ctx, const char *name, const char *value), void *ctx);
    void (*destroy)(struct gd_target *target); /* drops the connection, if any */
};

struct gd_target {
    const struct gd_target_ops *ops;
    struct gd_session *session; /* set by gd_session_create */
    unsigned capabilities;
    struct gd_target *next_dead; /* private to the debugger: waits for gd_debugger_reap */
};

/* Each forwards to the slot or fails with GD_EUNSUPPORTED, or with GD_ESTATE if the session's state
 * does not allow it (resume and fetch need a stop; interrupt needs a run). */
int gd_target_resume(struct gd_target *target, const struct gd_run *run, struct gd_err *err);
int gd_target_interrupt(struct gd_target *target, struct gd_err *err);
int gd_target_interrupt_at(struct gd_target *target, int64_t step, struct gd_err *err);
/* While it is stopped: the command that it carries out is to end early, if it can. */
int gd_target_interrupt_command(struct gd_target *target, struct gd_err *err);
int gd_target_command(struct gd_target *target, const char *name, const char *args, gd_node_id node,
                      gd_command_fn fn, void *ctx, struct gd_err *err);
int gd_target_set_breakpoints(struct gd_target *target, const gd_node_id *nodes, size_t count,
                              struct gd_err *err);
int gd_target_set_events(struct gd_target *target, const struct gd_event_wish *wishes, size_t count,
                         struct gd_err *err);
int gd_target_set_lines(struct gd_target *target, const struct gd_line_wish *wishes, size_t count,
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
int gd_target_end_training(struct gd_target *target, struct gd_err *err);

#endif
