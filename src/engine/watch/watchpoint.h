// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Watchpoints: a condition with its parameters, or an expression, and what it applies to. They
 * belong to the debugger, share their numbers with breakpoints, and apply to every session: they
 * are resolved again whenever a graph grows, and set again in a process that reconnects. Who
 * evaluates them (settings.evaluate): gradb, from statistics that the target computes by a plan
 * (watch_plan.c builds plans, watch_judge.c judges their reports), or a MindSpore process itself
 * (watch_remote.c).
 */
#ifndef GD_ENGINE_WATCHPOINT_H
#define GD_ENGINE_WATCHPOINT_H

#include "engine/debugger.h"
#include "engine/watch/condition.h"

enum gd_watch_action {
    GD_WATCH_STOP,  /* watch */
    GD_WATCH_TRACE, /* trace: report and continue */
};

struct gd_watch_spec {                    /* what a command asks for; copied */
    const struct gd_condition *condition; /* NULL: the expression */
    const struct gd_condition_value *values;
    size_t value_count;
    const char *expression;
    const char *guard; /* "if EXPR": must also hold; NULL none */
    const char *where; /* selector, or the name of a metric; NULL: the condition's default */
    enum gd_watch_when when;
    enum gd_watch_action action;
    uint32_t steps;    /* fires when it held in this many consecutive steps; 0 as 1 */
    bool temporary;    /* deleted once it has stopped the training */
    const char *label; /* "recommended"; NULL none */
    const char *event; /* a catchpoint: the event, "lr"; NULL: not a catchpoint */
};

struct gd_watchpoint {
    int number;
    const struct gd_condition *condition;                      /* NULL: expr */
    struct gd_condition_value values[GD_MAX_CONDITION_PARAMS]; /* names point into the condition */
    size_t value_count;
    struct gd_expr *expr;
    struct gd_expr *guard;        /* NULL none */
    char *where;                  /* as typed, edits applied: "weights except *.bias" */
    struct gd_selector *selector; /* NULL: `where` is the name of a metric */
    enum gd_watch_when when;
    enum gd_watch_action action;
    uint32_t steps; /* at least 1 */
    bool temporary;
    char *label; /* NULL none */
    char *event; /* NULL: no catchpoint */
    bool enabled;
    bool spent;              /* temporary and fired: deleted when the training stops */
    uint32_t revision;       /* grows with each edit */
    uint64_t ignore;         /* hits left to ignore */
    uint64_t checks;         /* judged values, in all sessions; 0 where a process evaluates */
    uint64_t hits;           /* times it fired, including ignored ones */
    uint64_t unclear;        /* times it could not be checked */
    unsigned unclear_errors; /* why: bits of enum gd_hit_error, of all those times */
    /* Values with infinities that the program asked for (masks of -inf), which did not count, and
     * the number of their tensors. */
    uint64_t intended, intended_tensors;
    /* Its share of the targets' cost, as of the last gd_watch_costs: a tensor's cost is divided
     * evenly among the watchpoints that cover it, so the shares add up. */
    uint64_t cost_ns;
    uint64_t cost_bytes; /* of reports */
    /* From the same answer: how often one of its tensors was examined since the targets got their
     * plans. Most of that is not worth a report, so checks are usually fewer; earlier plans can
     * make them more. */
    uint64_t looks;
    struct gd_watchpoint *next;
};

/* All watchpoints together: the basis for saying that none fired. */
struct gd_watch_tally {
    size_t watchpoints;
    uint64_t checks, hits, unclear;
    unsigned errors; /* why they could not be checked */
};
void gd_watch_tally(const struct gd_debugger *debugger, struct gd_watch_tally *ret);
/* What was added since `before`, of the same debugger. The reasons are those of all time. */
struct gd_watch_tally gd_watch_tally_since(const struct gd_debugger *debugger,
                                           const struct gd_watch_tally *before);

/* If no test is among the values, the condition's default applies. GD_EINVAL: the values, the
 * expression or the selector are wrong, or a required test is missing. If the current session
 * refuses it (GD_ESTATE, GD_EUNSUPPORTED, GD_ENOTFOUND), it is not added; other sessions that
 * cannot do it get a warning. */
int gd_watchpoint_add(struct gd_debugger *debugger, const struct gd_watch_spec *spec,
                      struct gd_watchpoint **ret, struct gd_err *err);
int gd_watchpoint_delete(struct gd_debugger *debugger, int number, struct gd_err *err);
int gd_watchpoint_enable(struct gd_debugger *debugger, int number, bool enable, struct gd_err *err);
/* Replaces the parameters (value_count > 0 or the defaults) of one that has a condition. */
int gd_watchpoint_set_values(struct gd_debugger *debugger, int number,
                             const struct gd_condition_value *values, size_t count,
                             struct gd_err *err);
/* Replaces the expression; not for one with a condition. */
int gd_watchpoint_set_expression(struct gd_debugger *debugger, int number, const char *text,
                                 struct gd_err *err);
/* Where it applies: '=' replaces, '+' adds nodes, '-' takes nodes away. */
int gd_watchpoint_set_where(struct gd_debugger *debugger, int number, char how, const char *where,
                            struct gd_err *err);
/* text NULL or "": no guard. */
int gd_watchpoint_set_guard(struct gd_debugger *debugger, int number, const char *text,
                            struct gd_err *err);
int gd_watchpoint_set_ignore(struct gd_debugger *debugger, int number, uint64_t count,
                             struct gd_err *err);
struct gd_watchpoint *gd_watchpoint_at(struct gd_debugger *debugger, int number);
/* Nodes that it covers in that session, constants left out; as gd_selector_resolve. */
int gd_watchpoint_nodes(const struct gd_watchpoint *watch, struct gd_session *session,
                        gd_node_id **ret, size_t *count, struct gd_err *err);
/* "TL abs_mean_gt=1000 on gradients if step > 10" */
int gd_watchpoint_text(const struct gd_watchpoint *watch, struct gd_buf *out);
/* The command line that sets it again, with options: "trace -step TL ..." */
int gd_watchpoint_command(const struct gd_watchpoint *watch, struct gd_buf *out);

/* After a change of settings.evaluate or settings.watch_when: sets all again. */
void gd_watchpoints_apply(struct gd_debugger *debugger);

/* Nodes where non-finite values are normal (masks): conditions that look for those do not fire
 * there, and others do not report "could not check" because of them. Applies to all sessions. */
int gd_exclude_add(struct gd_debugger *debugger, const char *where, struct gd_err *err);
int gd_exclude_delete(struct gd_debugger *debugger, const char *where, struct gd_err *err);
const char *gd_exclude_at(const struct gd_debugger *debugger, size_t index); /* NULL: the end */

/* How watchpoints follow a session. Called by gd_debugger_emit after all observers, so that a front
 * end can still show a temporary watchpoint that is deleted because it fired. */
void gd_watchpoints_on_event(struct gd_debugger *debugger, const struct gd_event *event);
/* Called by gd_debugger_destroy and when a session is destroyed. */
void gd_watchpoints_free(struct gd_debugger *debugger);
void gd_watching_free(struct gd_session *session);

/* ---- what is watched ----------------------------------------------------------------------- */

enum gd_watch_state { GD_WATCHED_NONE, GD_WATCHED_PART, GD_WATCHED_ALL, GD_WATCHED_CANNOT };
/* By enabled watchpoints. A node: none, all or cannot (a constant, nothing to compute). A scope:
 * the nodes below it. O(1) for a node; a scope's answer is cached until something changes. */
enum gd_watch_state gd_watch_node_state(struct gd_session *session, gd_node_id node);
enum gd_watch_state gd_watch_scope_state(struct gd_session *session, gd_scope_id scope);
/* Where a watchpoint is judged in a session (NULL: as configured). */
enum gd_watch_place {
    GD_WATCH_PLACE_NONE,  /* nowhere: `why` says what prevents it */
    GD_WATCH_PLACE_EXACT, /* by gradb, as soon as a node has run; leaves for the end of the step */
    GD_WATCH_PLACE_STEP_END, /* by gradb, at the end of the step */
    GD_WATCH_PLACE_START,    /* by gradb, before the first step */
    GD_WATCH_PLACE_PROCESS,  /* by the process itself */
};
enum gd_watch_place gd_watchpoint_place(const struct gd_watchpoint *watch,
                                        const struct gd_debugger *debugger,
                                        const struct gd_session *session, char *why, size_t size);
/* Numbers of the watchpoints that cover a node; returns how many there are, fills at most max. */
size_t gd_watch_of_node(struct gd_session *session, gd_node_id node, int *ret, size_t max);

/* Asks all live sessions; fn runs once, when all have answered: the watchpoints' cost_ns,
 * cost_bytes and looks are then up to date, unless they were asked again meanwhile. */
struct gd_watch_total { /* of all sessions */
    uint64_t tensors;   /* in plans now */
    uint64_t compute_ns, wait_ns, reports, report_bytes;
};
int gd_watch_costs(struct gd_debugger *debugger,
                   void (*fn)(void *ctx, const struct gd_watch_total *total), void *ctx,
                   struct gd_err *err);

/* Judges everything again on the values of this stop: asks the target for missing ones, reports
 * hits, then calls fn with the number of hits. A process that evaluates watchpoints itself is asked
 * to do it (GD_RUN_RECHECK). GD_ESTATE: it is running. */
size_t gd_watch_recheck_missing(const struct gd_session *session); /* tensors without a value */
int gd_watch_recheck(struct gd_session *session,
                     void (*fn)(void *ctx, size_t hits, const struct gd_err *err), void *ctx,
                     struct gd_err *err);

/* Stopped before its first step while statistics of weights that are judged there are still
 * missing: a run now would lose those values. */
bool gd_watch_is_busy(const struct gd_session *session);

/* Forgets what was learned about values (their past, what was reported): for a record that is
 * replayed from its start. */
void gd_watch_forget(struct gd_session *session);

/* ---- recommended --------------------------------------------------------------------------- */

/* A starter set that fits the session's graph and device, one by one; for a process that evaluates
 * watchpoints itself, MindInsight's set. */
struct gd_recommendation {
    const char *name; /* "recommend_tensor_overflow_watchpoint" */
    const struct gd_condition *condition;
    struct gd_condition_value values[GD_MAX_CONDITION_PARAMS];
    size_t value_count;
    const char *where;
    const char *guard; /* NULL: none */
    uint32_t steps;    /* in a row */
    size_t nodes;      /* covered now */
};
/* Whether a watchpoint of that condition could be set in the session now. */
bool gd_watch_can(struct gd_session *session, const struct gd_condition *condition);
/* The index-th one that applies; false at the end. Those without nodes, or whose condition is not
 * available there, are left out. */
bool gd_recommendation_at(struct gd_session *session, size_t index, struct gd_recommendation *ret);
size_t gd_recommendation_count(struct gd_session *session);

#endif
