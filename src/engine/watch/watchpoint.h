// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Watchpoints: a condition with its parameters, or an expression, and what it applies to. They
 * belong to the debugger, share their numbers with breakpoints, and hold for every session: they
 * are resolved again whenever a graph grows, and set again in a process that comes back.
 *
 * Who evaluates (settings.evaluate): gradb, from statistics that the target computes by a plan
 * (watch_plan.c builds the plans, watch_judge.c judges what they report), or a MindSpore process by
 * itself (watch_remote.c).
 */
#ifndef GD_ENGINE_WATCHPOINT_H
#define GD_ENGINE_WATCHPOINT_H

#include "engine/debugger.h"
#include "engine/watch/condition.h"

enum gd_watch_action {
    GD_WATCH_STOP,  /* watch */
    GD_WATCH_TRACE, /* trace: report and go on */
};

struct gd_watch_spec {                    /* what a command asks for; copied */
    const struct gd_condition *condition; /* NULL: the expression */
    const struct gd_condition_value *values;
    size_t value_count;
    const char *expression;
    const char *guard; /* "if EXPR": must be true, too; NULL none */
    const char
        *where; /* selector, or for a scalar its name; NULL: what the condition is made for */
    enum gd_watch_when when;
    enum gd_watch_action action;
    uint32_t steps;    /* fires when it held in so many steps in a row; 0 as 1 */
    bool temporary;    /* deleted when it has stopped the training */
    const char *label; /* "recommended"; NULL none */
    const char *event; /* a catchpoint: the name of what it stands for, "lr"; NULL: it is none */
};

struct gd_watchpoint {
    int number;
    const struct gd_condition *condition;                      /* NULL: expr */
    struct gd_condition_value values[GD_MAX_CONDITION_PARAMS]; /* names point into the condition */
    size_t value_count;
    struct gd_expr *expr;
    struct gd_expr *guard;        /* NULL none */
    char *where;                  /* as typed, edits applied: "weights except *.bias" */
    struct gd_selector *selector; /* NULL: where is the name of a scalar */
    enum gd_watch_when when;
    enum gd_watch_action action;
    uint32_t steps; /* at least 1 */
    bool temporary;
    char *label; /* NULL none */
    char *event; /* NULL: no catchpoint */
    bool enabled;
    bool spent;        /* a temporary one that has fired: it goes when the training stops */
    uint32_t revision; /* grows with each edit */
    uint64_t ignore;   /* hits left to ignore */
    uint64_t checks;   /* values that were judged, in all sessions; 0 where a process evaluates */
    uint64_t hits;     /* times it fired, ignored ones too */
    uint64_t unclear;  /* times it could not be checked */
    unsigned unclear_errors; /* why: bits of enum gd_hit_error of all these times */
    /* Values whose infinities the program asked for (masks of -inf), so that they did not count,
     * and of how many tensors they were. */
    uint64_t intended, intended_tensors;
    /* Its share of what the targets spent, by the last gd_watch_costs: a tensor's cost is divided
     * evenly among the watchpoints that cover it, so that the shares add up. */
    uint64_t cost_ns;
    uint64_t cost_bytes; /* of reports */
    /* By the same answer: how often a tensor of its was looked at, as long as the targets have had
     * their plans. Most of that is nothing to report, so checks are fewer; or more, of plans that
     * were before. */
    uint64_t looks;
    struct gd_watchpoint *next;
};

/* Of all watchpoints together: what an answer that none fired is based on. */
struct gd_watch_tally {
    size_t watchpoints;
    uint64_t checks, hits, unclear;
    unsigned errors; /* why they could not be checked */
};
void gd_watch_tally(const struct gd_debugger *debugger, struct gd_watch_tally *ret);
/* What came since `before`, of the same debugger. The reasons are those of all times. */
struct gd_watch_tally gd_watch_tally_since(const struct gd_debugger *debugger,
                                           const struct gd_watch_tally *before);

/* Without a test among the values the condition's default is taken. GD_EINVAL: the values, the
 * expression or the selector are wrong, or a test is missing that has no default. The current
 * session's refusal (GD_ESTATE, GD_EUNSUPPORTED, GD_ENOTFOUND) refuses it; another session that
 * cannot do it is told by a warning. */
int gd_watchpoint_add(struct gd_debugger *debugger, const struct gd_watch_spec *spec,
                      struct gd_watchpoint **ret, struct gd_err *err);
int gd_watchpoint_delete(struct gd_debugger *debugger, int number, struct gd_err *err);
int gd_watchpoint_enable(struct gd_debugger *debugger, int number, bool enable, struct gd_err *err);
/* Replaces the parameters (value_count > 0 or the defaults) of one that has a condition. */
int gd_watchpoint_set_values(struct gd_debugger *debugger, int number,
                             const struct gd_condition_value *values, size_t count,
                             struct gd_err *err);
/* Replaces the expression of one that is an expression. */
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
/* The command line that makes it again, with options: "trace -step TL ..." */
int gd_watchpoint_command(const struct gd_watchpoint *watch, struct gd_buf *out);

/* After a change of settings.evaluate or settings.watch_when: sets all again. */
void gd_watchpoints_apply(struct gd_debugger *debugger);

/* Nodes where values that are not finite are normal (masks): conditions that look for those do not
 * fire there, and no other says "could not check" because of them. Holds for all sessions. */
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
/* By enabled watchpoints. A node: none, all or cannot (a constant, nothing to compute). A scope: of
 * the nodes below it. O(1) for a node; a scope's answer is kept until something changes. */
enum gd_watch_state gd_watch_node_state(struct gd_session *session, gd_node_id node);
enum gd_watch_state gd_watch_scope_state(struct gd_session *session, gd_scope_id scope);
/* Where a watchpoint is judged in a session (NULL: as it is meant). */
enum gd_watch_place {
    GD_WATCH_PLACE_NONE,     /* nowhere: `why` says what hinders */
    GD_WATCH_PLACE_EXACT,    /* by us, as soon as a node has run; leaves at the end of the step */
    GD_WATCH_PLACE_STEP_END, /* by us, at the end of the step */
    GD_WATCH_PLACE_START,    /* by us, before the first step */
    GD_WATCH_PLACE_PROCESS,  /* by the process itself */
};
enum gd_watch_place gd_watchpoint_place(const struct gd_watchpoint *watch,
                                        const struct gd_debugger *debugger,
                                        const struct gd_session *session, char *why, size_t size);
/* Numbers of the watchpoints that cover a node; returns how many there are, fills at most max. */
size_t gd_watch_of_node(struct gd_session *session, gd_node_id node, int *ret, size_t max);

/* Asks all live sessions; fn runs once, when all have answered: the watchpoints' cost_ns,
 * cost_bytes and looks are up to date then, unless it was asked again meanwhile. */
struct gd_watch_total { /* of all sessions */
    uint64_t tensors;   /* in plans now */
    uint64_t compute_ns, wait_ns, reports, report_bytes;
};
int gd_watch_costs(struct gd_debugger *debugger,
                   void (*fn)(void *ctx, const struct gd_watch_total *total), void *ctx,
                   struct gd_err *err);

/* Judges everything again on the values of this stop: asks the target for what is missing, reports
 * hits, then calls fn with the number of hits. A process that evaluates by itself is asked to
 * (GD_RUN_RECHECK). GD_ESTATE: it runs. */
size_t gd_watch_recheck_missing(const struct gd_session *session); /* tensors without a value */
int gd_watch_recheck(struct gd_session *session,
                     void (*fn)(void *ctx, size_t hits, const struct gd_err *err), void *ctx,
                     struct gd_err *err);

/* It stands before its first step, and statistics of weights that are judged there have not all
 * come: a run now would take the values away. */
bool gd_watch_is_busy(const struct gd_session *session);

/* What was learned of the values so far (their past, what was told of them) is forgotten: of a
 * record that is gone through from its beginning. */
void gd_watch_forget(struct gd_session *session);

/* ---- recommended --------------------------------------------------------------------------- */

/* A starter set that fits the session's graph and device, one by one: of a process that evaluates
 * by itself MindInsight's. */
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
/* The index-th that applies; false at the end. One whose nodes are none, or whose condition is not
 * available there, is left out. */
bool gd_recommendation_at(struct gd_session *session, size_t index, struct gd_recommendation *ret);

#endif
