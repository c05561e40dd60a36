// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Private parts of a MindSpore target: ms_target.c is its life cycle, ms_run.c its position and its
 * runs, ms_view.c its tensors, ms_watch.c the watchpoints that it evaluates and their hits,
 * ms_plan.c and ms_evaluate.c those that gradb evaluates.
 */
#ifndef GD_PROTO_MS_TARGET_IMPL_H
#define GD_PROTO_MS_TARGET_IMPL_H

#include "proto/ms/ms_target.h"

enum ms_phase {
    MS_FRESH,      /* has not waited for a command yet */
    MS_SUSPENDED,  /* in a wait loop; no call may be held between two of its polls */
    MS_RUNNING,    /* was asked to run */
    MS_RECHECKING, /* was asked to check its watchpoints again */
    MS_EXITING,    /* was asked to end */
};

enum ms_level_sent { MS_SENT_STEP, MS_SENT_NEXT, MS_SENT_NAMED };

/* Where the process is stopped, by our own count: cur_step has a different meaning in each
 * release. */
struct ms_position {
    int64_t step; /* in which, or (at_end) after which it is stopped; 0: before the first */
    bool at_end;
    int64_t base; /* added to cur_step */
    int32_t cur_step;
    bool counts_after; /* see gd_ms_version; corrected by observation */
    char cur_node[512];
    char graph_id[64]; /* as reported by the process */
    bool tells_graph;  /* it has reported two different ones */
};

struct ms_run {
    enum gd_run_kind kind;
    int64_t left;       /* NEXT: nodes, STEP: steps */
    int64_t start_step; /* complete steps when it began */
    gd_node_id node;    /* for TO_NODE; GD_NO_NODE: unknown in the graph */
    char name[512];     /* ... and its name on the wire */
    bool is_kernel;     /* the graph knows this name as an operator */
    enum ms_level_sent sent;
    char sent_name[512];
    bool hit;           /* a watchpoint fired since the last run reply */
    bool any_hits;      /* ... or could not be checked */
    bool end_hits;      /* ... by a condition that is only checked at the end of a step */
    char hit_name[512]; /* node of the first of them; "" */
    bool other_hits;    /* ... and others were on other nodes */
    char hit_text[160]; /* the hit of our own evaluation; "" */
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
    gd_tensor_fn tensor_fn; /* exactly one of the two is set */
    gd_stats_fn stats_fn;
    void *ctx;
    enum gd_ms_level level; /* of the pending or next ViewCMD */
    bool out;
    bool base_tried, has_base;
    struct gd_ms_base base;
    bool together;                  /* may be sent together with others */
    uint64_t bytes;                 /* expected size of its value; 0: unknown */
    char name[GD_MS_MAX_VIEW_NAME]; /* as requested */
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
    size_t client_count, client_capacity;
    int64_t set_after; /* complete steps when it was set */
    int missing_steps; /* consecutive stops at which the process had no previous values */
    int64_t missing_at;
};

struct ms_plans; /* evaluation by ourselves: ms_plan.h */

enum ms_ran { MS_RAN_UNKNOWN, MS_RAN, MS_RAN_NOT };

struct ms_pending_hit {
    struct gd_hit hit;
    uint32_t rank; /* of its operator among the others */
    uint32_t at;   /* order of arrival */
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
    int32_t heartbeat_period; /* 0: none received */
    bool silent;              /* it has been reported */
    uint64_t waits, views_sent, hits_seen, failures;
    const char *last_call;

    enum ms_phase phase;
    bool mismatch;
    bool got_graph;
    unsigned graphs; /* loaded */
    /* arrived while it was running: its next wait is before that graph's first step */
    bool new_graph;
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
    char **breakpoints; /* their names on the wire */
    size_t breakpoint_count;

    struct ms_command *commands, **commands_end;
    struct ms_view *views, **views_end;
    struct ms_watch *watches;
    enum { PREVIOUS_UNKNOWN, PREVIOUS_ASKED, PREVIOUS_THERE, PREVIOUS_MISSING } previous;
    int32_t next_client_id;
    unsigned stray_hits; /* of watchpoints that were never set */
    uint64_t moves;      /* changes of position */
    uint8_t *ran;        /* by node, at the move ran_at: enum ms_ran */
    uint32_t ran_limit;
    uint64_t ran_at;
    /* warned that nodes with the same name in several graphs are indistinguishable */
    bool told_shared;
    bool init_watch;           /* a weight_initialization was set since the last check */
    uint64_t error_seen[1024]; /* failed checks that were reported already */
    struct ms_plans *plans;    /* NULL until needed */
    struct ms_hits hits;
    bool ending; /* only finishes pending requests; sends nothing more */
};

/* ms_target.c */
void ms_pump(struct gd_ms_target *target);
void ms_warn(struct gd_ms_target *target, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The node with exactly this name or wire name, else GD_NO_NODE. If several graphs have it: that of
 * the graph the process reports to be in. */
gd_node_id ms_find_node(const struct gd_ms_target *target, const char *name);
/* Whether the reported name means this node, as far as the process says. */
bool ms_is_node(const struct gd_ms_target *target, gd_node_id node, const char *wire,
                const char *told);
/* The operator that ran last, inside a step; GD_NO_NODE: unknown. */
gd_node_id ms_stopped_node(const struct gd_ms_target *target);
/* Explains once that several graphs have nodes with the same name. */
void ms_tell_shared(struct gd_ms_target *target, const char *name);
/* It has reached a new position: stops there or continues. */
void ms_arrived(struct gd_ms_target *target);

/* ms_run.c */
void ms_position_first(struct gd_ms_target *target, const struct gd_ms_metadata *metadata);
void ms_position_update(struct gd_ms_target *target, const struct gd_ms_metadata *metadata);
/* The number of steps completed when the training ends: more than at the last stop if steps do not
 * stop at their end. */
int64_t ms_position_last(const struct gd_ms_target *target, const struct gd_ms_metadata *metadata);
int64_t ms_steps_done(const struct gd_ms_target *target);
/* The graph that the process is in; GD_NO_SUBGRAPH: unknown. */
uint32_t ms_current_graph(const struct gd_ms_target *target);
int ms_run_begin(struct gd_ms_target *target, const struct gd_run *run, struct gd_err *err);
/* Whether to stop here; otherwise the run continues. */
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
/* The same for a complete tensor; small ones share a command. known_bytes is its previous size (0:
 * unknown): a small one is requested without asking for its size first. A previous value is
 * requested next, because the caller holds this step's value until it arrives. After the last
 * request, call ms_pump. */
int ms_view_value(struct gd_ms_target *target, const struct gd_tensor_ref *ref,
                  uint64_t known_bytes, gd_tensor_fn fn, void *ctx, struct gd_err *err);
/* The process's own statistics; those that it does not report are NaN. Needs has_levels. */
int ms_view_summary(struct gd_ms_target *target, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                    void *ctx, struct gd_err *err);
/* The name under which an operator, parameter or constant is requested. */
void ms_view_name(const struct gd_node_info *info, char *out, size_t size);
/* The first of the queue, and others that may be sent with it. */
int ms_view_write(struct gd_ms_target *target, struct gd_buf *out);
/* the next WaitCMD arrived before the answer */
void ms_view_unanswered(struct gd_ms_target *target);
void ms_view_fail_all(struct gd_ms_target *target, int code, const char *why);

/* ms_watch.c */
int ms_watch_set(struct gd_target *base, const struct gd_remote_watch *watch, struct gd_err *err);
int ms_watch_unset(struct gd_target *base, int32_t id, struct gd_err *err);
void ms_watch_free(struct gd_ms_target *target);
/* Makes the process keep the values of exactly these nodes, without evaluating anything. *capture
 * is what it knows so far; NULL at first. */
int ms_watch_capture(struct gd_ms_target *target, struct ms_watch **capture,
                     const gd_node_id *nodes, size_t count, struct gd_err *err);
void ms_watch_capture_free(struct ms_watch *capture);
/* At the end of a step: checks whether the process has the previous values that its watchpoints on
 * changes need. It may lack them without saying so. */
void ms_watch_check_previous(struct gd_ms_target *target);
/* Reports the received hits to the session, in execution order. */
void ms_watch_report(struct gd_ms_target *target);

/* ms_plan.c */
int ms_plan_set(struct gd_target *base, const struct gd_watch_plan *plan, struct gd_err *err);
int ms_plan_costs(struct gd_target *base, gd_watch_costs_fn fn, void *ctx, struct gd_err *err);
/* Sends the process what to keep for the plans, if that has changed. */
void ms_plan_capture(struct gd_ms_target *target);
void ms_plan_free(struct gd_ms_target *target);

/* ms_evaluate.c */
/* At the end of a step: fetches what the plans watch. True: started; ms_arrived is called when
 * done. */
bool ms_plan_begin(struct gd_ms_target *target);

#endif
