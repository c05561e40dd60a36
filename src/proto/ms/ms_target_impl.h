// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The private halves of a MindSpore target: ms_target.c is its life, ms_run.c where it stands and
 * how far it runs, ms_view.c its tensors, ms_watch.c the watchpoints that it evaluates and their
 * hits, ms_plan.c and ms_evaluate.c those that gradb evaluates. Nobody else includes this.
 */
#ifndef GD_PROTO_MS_TARGET_IMPL_H
#define GD_PROTO_MS_TARGET_IMPL_H

#include "proto/ms/ms_target.h"

enum ms_phase {
    MS_FRESH,      /* has not waited for a command yet */
    MS_SUSPENDED,  /* in a wait loop; between two of its polls nothing may be held */
    MS_RUNNING,    /* was told to run */
    MS_RECHECKING, /* was told to check its watchpoints again */
    MS_EXITING,    /* was told to end */
};

enum ms_level_sent { MS_SENT_STEP, MS_SENT_NEXT, MS_SENT_NAMED };

/* Where the process stands, by our own count: cur_step means something else in each release. */
struct ms_position {
    int64_t step; /* in which, or (at_end) after which it stands; 0 before the first */
    bool at_end;
    int64_t base; /* added to cur_step */
    int32_t cur_step;
    bool counts_after; /* see gd_ms_version; corrected by what is observed */
    char cur_node[512];
    char graph_id[64]; /* that the process says it is in */
    bool tells_graph;  /* it has told two different ones */
};

struct ms_run {
    enum gd_run_kind kind;
    int64_t left;       /* NEXT: nodes, STEP: steps */
    int64_t start_step; /* steps that were complete when it began */
    gd_node_id node;    /* TO_NODE: GD_NO_NODE when the graph lacks it */
    char name[512];     /* ... and what the wire calls it */
    bool is_kernel;     /* the graph knows that name as an operator's */
    enum ms_level_sent sent;
    char sent_name[512];
    bool hit;           /* a watchpoint fired since the last run reply */
    bool any_hits;      /* ... or could not be checked */
    bool end_hits;      /* ... by a condition that is only looked at when a step has ended */
    char hit_name[512]; /* that the first of them was on; "" */
    bool other_hits;    /* ... and others were on something else */
    char hit_text[160]; /* what fired by our own evaluation; "" */
};

struct ms_command { /* an encoded set or delete, waiting for a WaitCMD */
    struct ms_command *next;
    size_t len;
    unsigned char data[];
};

struct ms_view { /* a request for a tensor or its statistics */
    struct ms_view *next;
    struct gd_tensor_ref ref;
    struct gd_slice slice;
    gd_tensor_fn tensor_fn; /* one of the two */
    gd_stats_fn stats_fn;
    void *ctx;
    enum gd_ms_level level; /* of the ViewCMD that is out or comes next */
    bool out;
    bool base_tried, has_base;
    struct gd_ms_base base;
    bool together;                  /* may go out with others */
    uint64_t bytes;                 /* that its value is thought to have; 0 not known */
    char name[GD_MS_MAX_VIEW_NAME]; /* as asked for */
};

struct ms_watch { /* a watchpoint as the process knows it: one or several ids */
    struct ms_watch *next;
    int32_t id; /* ours */
    int condition;
    struct gd_remote_param params[GD_MAX_HIT_PARAMS];
    char param_name[GD_MAX_HIT_PARAMS][48];
    size_t param_count;
    gd_node_id *nodes;
    size_t node_count;
    int32_t *client_ids;
    size_t client_count;
    int64_t set_after; /* steps that were done when it was set */
    int missing_steps; /* stops in a row at which the process had no previous values */
    int64_t missing_at;
};

struct ms_plans; /* evaluation by ourselves: ms_plan.h */

enum ms_ran { MS_RAN_UNKNOWN, MS_RAN, MS_RAN_NOT };

struct ms_pending_hit {
    struct gd_hit hit;
    uint32_t rank; /* of its operator among the others */
    uint32_t at;   /* in the order in which they came */
};
struct ms_hits { /* of one list, until it is complete */
    struct ms_pending_hit *item;
    size_t count, cap;
};

struct gd_ms_target {
    struct gd_target base; /* first */
    struct gd_debugger *debugger;
    const struct gd_ms_io *io;
    void *owner;

    void *held; /* the WaitCMD */
    double held_since;
    double heard;             /* last sign of life, by the debugger's clock */
    int32_t heartbeat_period; /* 0: none seen */
    bool silent;              /* the user was told */
    uint64_t waits, views_sent, hits_seen, failures;
    const char *last_call;

    enum ms_phase phase;
    bool mismatch;
    bool got_graph;
    unsigned graphs; /* that were taken */
    bool new_graph;  /* came while it ran: it waits next before that graph's first step */
    int32_t graphs_expected;
    bool is_gpu;
    char device[128];
    char version_text[64];
    struct gd_ms_version version;

    struct ms_position at;
    struct ms_run run;
    enum gd_stop_reason reason; /* of the last stop */
    bool want_run, want_recheck, want_exit, want_interrupt;
    bool recheck_asked; /* by the user, not before the first step */
    bool recheck_hit;
    gd_node_id *break_nodes;
    char **breakpoints; /* their names as the wire has them */
    size_t breakpoint_count;

    struct ms_command *commands, **commands_end;
    struct ms_view *views, **views_end;
    struct ms_watch *watches;
    enum { PREVIOUS_UNKNOWN, PREVIOUS_ASKED, PREVIOUS_THERE, PREVIOUS_MISSING } previous;
    int32_t next_client_id;
    unsigned stray_hits; /* of watchpoints that were never set */
    uint64_t moves;      /* how often it came somewhere else */
    uint8_t *ran;        /* by node, at the move ran_at: enum ms_ran */
    uint32_t ran_limit;
    uint64_t ran_at;
    bool told_shared;          /* that it does not say of which graph a node is */
    bool init_watch;           /* a weight_initialization was set since the last check */
    uint64_t error_seen[1024]; /* what could not be checked and was told already */
    struct ms_plans *plans;    /* NULL until needed */
    struct ms_hits hits;
    bool ending; /* answers come only to end requests: nothing goes on */
};

/* ms_target.c */
double ms_now(const struct gd_ms_target *target);
void ms_pump(struct gd_ms_target *target);
void ms_warn(struct gd_ms_target *target, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The node of that exact name or wire name, else GD_NO_NODE; one that several graphs have is that
 * of the graph that the process is in, where it says so. */
gd_node_id ms_find_node(const struct gd_ms_target *target, const char *name);
/* Whether the name that the process tells means that node, as far as it says. */
bool ms_is_node(const struct gd_ms_target *target, gd_node_id node, const char *wire,
                const char *told);
/* The operator that ran last, in the middle of a step; GD_NO_NODE: not known. */
gd_node_id ms_stopped_node(const struct gd_ms_target *target);
/* Says once what it means that several graphs have nodes of one name. */
void ms_tell_shared(struct gd_ms_target *target, const char *name);
void ms_stop(struct gd_ms_target *target, enum gd_stop_reason reason);
/* It stands somewhere new: stops there or goes on. */
void ms_arrived(struct gd_ms_target *target);

/* ms_run.c */
void ms_position_first(struct gd_ms_target *target, const struct gd_ms_metadata *metadata);
void ms_position_update(struct gd_ms_target *target, const struct gd_ms_metadata *metadata);
/* The steps that are done when the training is: more than at the last stop where steps do not stop
 * at their end. */
int64_t ms_position_last(const struct gd_ms_target *target, const struct gd_ms_metadata *metadata);
int64_t ms_steps_done(const struct gd_ms_target *target);
/* The graph that the process is in; GD_NO_SUBGRAPH: it does not tell. */
uint32_t ms_current_graph(const struct gd_ms_target *target);
int ms_run_begin(struct gd_ms_target *target, const struct gd_run *run, struct gd_err *err);
/* Whether to stop here; else the run goes on. */
bool ms_run_decide(struct gd_ms_target *target, enum gd_stop_reason *reason);
int ms_run_write(struct gd_ms_target *target, struct gd_buf *out);
int ms_run_set_breakpoints(struct gd_target *base, const gd_node_id *nodes, size_t count,
                           struct gd_err *err);
void ms_run_free(struct gd_ms_target *target);

/* ms_view.c */
int ms_view_fetch(struct gd_target *base, const struct gd_tensor_ref *ref,
                  const struct gd_slice *slice, gd_tensor_fn fn, void *ctx, struct gd_err *err);
int ms_view_stats(struct gd_target *base, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                  void *ctx, struct gd_err *err);
/* The same for a whole tensor, with others in one command where they are small. It had known_bytes
 * last time (0: not known): a small one is asked for without asking for its size first. A value of
 * the step before is asked for next, since somebody holds this step's until it comes. Whoever has
 * asked for all that he wants calls ms_pump. */
int ms_view_value(struct gd_ms_target *target, const struct gd_tensor_ref *ref,
                  uint64_t known_bytes, gd_tensor_fn fn, void *ctx, struct gd_err *err);
/* What the process computes itself; figures that it does not tell are NaN. Wants has_levels. */
int ms_view_summary(struct gd_ms_target *target, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                    void *ctx, struct gd_err *err);
/* What an operator, parameter or constant is asked for by. */
void ms_view_name(const struct gd_node_info *info, char *out, size_t size);
/* The first of the queue, and others that may go out with it. */
int ms_view_write(struct gd_ms_target *target, struct gd_buf *out);
void ms_view_unanswered(struct gd_ms_target *target); /* the next WaitCMD came first */
void ms_view_fail_all(struct gd_ms_target *target, int code, const char *why);

/* ms_watch.c */
int ms_watch_set(struct gd_target *base, const struct gd_remote_watch *watch, struct gd_err *err);
int ms_watch_unset(struct gd_target *base, int32_t id, struct gd_err *err);
void ms_watch_free(struct gd_ms_target *target);
/* Makes the process hold the values of those nodes, and no others, without evaluating anything.
 * *capture is what it knows so far, NULL at first. */
int ms_watch_capture(struct gd_ms_target *target, struct ms_watch **capture,
                     const gd_node_id *nodes, size_t count, struct gd_err *err);
void ms_watch_capture_free(struct ms_watch *capture);
/* At the end of a step: whether the process has the previous values that its watchpoints on changes
 * need. One that lacks them need not say so. */
void ms_watch_check_previous(struct gd_ms_target *target);
/* Tells the session of the hits that have come, in execution order. */
void ms_watch_report(struct gd_ms_target *target);

/* ms_plan.c */
int ms_plan_set(struct gd_target *base, const struct gd_watch_plan *plan, struct gd_err *err);
int ms_plan_costs(struct gd_target *base, gd_watch_costs_fn fn, void *ctx, struct gd_err *err);
/* Tells the process what it must hold for the plans, when that has changed. */
void ms_plan_capture(struct gd_ms_target *target);
void ms_plan_free(struct gd_ms_target *target);

/* ms_evaluate.c */
/* At the end of a step: fetches what the plans watch. True when it has begun: ms_arrived is called
 * when it is done. */
bool ms_plan_begin(struct gd_ms_target *target);

#endif
