// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A session: one training process as the debugger knows it. It outlives its target's connection, so
 * what was learned of a lost or finished run stays readable. The session owns its target, its graph
 * and its tensor cache. Targets report with gd_session_on_*; front ends read the fields, ask with
 * gd_session_fetch, gd_session_stats and gd_target_*, and receive events as the debugger's
 * observers.
 */
#ifndef GD_ENGINE_SESSION_H
#define GD_ENGINE_SESSION_H

#include "engine/event/event_log.h"
#include "engine/event/happening.h"
#include "engine/line/line.h"
#include "engine/target.h"
#include "engine/timing/report.h"
#include "engine/timing/step_times.h"
#include "engine/timing/timeline.h"
#include "engine/watch/past_values.h"

struct gd_debugger;
struct gd_watching;
struct gd_history;

enum gd_state {
    GD_WAITING,   /* known, but no graph yet */
    GD_CONNECTED, /* graph arriving or complete; has not stopped yet */
    GD_RUNNING,
    GD_STOPPED,  /* commands can look around */
    GD_LOST,     /* the connection broke; last values stay readable */
    GD_FINISHED, /* the training ended or was detached */
};
const char *gd_state_name(enum gd_state state); /* "waiting", ... */

enum gd_stop_reason {
    GD_STOP_NONE,
    GD_STOP_CONNECTED, /* before the first step */
    GD_STOP_STEP,      /* the requested steps are done */
    GD_STOP_NODE,      /* next or run-to is done */
    GD_STOP_BREAKPOINT,
    GD_STOP_INTERRUPT,
    GD_STOP_HIT,       /* a watchpoint fired */
    GD_STOP_PHASE,     /* finish is done */
    GD_STOP_PROGRAM,   /* the training process asked for it */
    GD_STOP_EXCEPTION, /* an exception was raised there */
    GD_STOP_EVENT,     /* an event of the training: `happened` */
    GD_STOP_END,       /* the record ends here */
};
const char *gd_stop_reason_name(enum gd_stop_reason reason);

#define GD_STOP_TEXT_MAX 1024 /* an exception's message, its lines joined */

struct gd_stop {
    enum gd_stop_reason reason;
    int64_t step;        /* the step in which, or after which, it is stopped; 0 before the first */
    bool at_step_end;    /* stopped between two steps */
    gd_node_id node;     /* last node executed; GD_NO_NODE when unknown or between steps */
    char node_name[512]; /* its name, also when the graph lacks it; "" when none */
    char phase[32];      /* "forward", "backward", "optimizer", or "" */
    /* the process's own message if it asked to stop or raised an exception, else "" */
    char text[GD_STOP_TEXT_MAX];
    bool at_line;                /* GD_STOP_BREAKPOINT before a line: gd_session_line_stack */
    struct gd_happened happened; /* GD_STOP_EVENT */
    bool passing;      /* only to run the commands of `on`: the run continues afterwards */
    bool together;     /* stopped only because the ranks of its job are, and not the selected one */
    bool recorded;     /* of a dump, whose first step may have number 0 */
    int64_t left;      /* recorded: steps of its run that are left */
    uint64_t sequence; /* counts stops of this session from 1 */
};

/* No step has ended and no node has run. Steps count from 1, but a dump's may start at 0. */
bool gd_stop_is_before_first(const struct gd_stop *stop);

struct gd_peer { /* what the process reported about itself; empty strings where it did not */
    char framework[64];
    char version[64];
    char device[64];
    char host[128];
    char program[256];
    char address[128]; /* peer address, "127.0.0.1:41234" */
    int64_t pid;       /* 0 unknown */
    bool remote;       /* on another host, or of another user as far as is known */
    int rank;          /* 0 when single */
    int world_size;    /* 1 when single */
    char job[64];      /* the same for all ranks of one job; "" when unknown */
};

struct gd_scalar { /* the last value of a metric: loss, lr, epoch, ... */
    char name[64];
    double value;
    int64_t step;
    double first; /* the first value, and its step */
    int64_t first_step;
    double before; /* the last value of an earlier step; has_before */
    bool has_before;
    bool late;              /* reported when its step had ended, and not before that */
    struct gd_scalar_past { /* the finite ones, the first of each step */
        int64_t count;      /* steps; 0: no other field is set */
        double first, least, last;
        int64_t first_step, least_step, last_step;
        /* consecutive steps, up to the last, each with a larger value than the previous one */
        int64_t rises;
        double rose_from;
        int64_t rose_at; /* the step before the first of them */
    } past;
    struct gd_past_values values; /* all, for expressions */
};
#define GD_MAX_SCALARS 256
#define GD_MAX_FIRED   32

struct gd_timing {       /* seconds; of this session, by the debugger's clock */
    double connected_at; /* seconds since the epoch */
    double running;      /* total time spent running */
    double stopped;      /* total time spent stopped */
    double last_run;     /* length of the last run */
    int64_t steps_run;   /* steps taken under the debugger */
    int64_t last_run_steps;
};

struct gd_hit_param {
    char name[48];
    bool hit;
    bool disabled;
    double set_value;
    double actual_value;
};
#define GD_MAX_HIT_PARAMS 8
/* Bits: why a watchpoint could not be checked */
enum gd_hit_error {
    GD_HIT_NAN = 1,
    GD_HIT_INF = 2,
    GD_HIT_NO_PREVIOUS = 4,
    GD_HIT_NO_MEMORY = 8,
    GD_HIT_NO_HISTORY = 16,
    GD_HIT_NO_VALUE = 32,
    /* gradb's own */
    GD_HIT_EMPTY = 64,         /* no elements */
    GD_HIT_NOT_NUMBERS = 128,  /* it cannot be read as numbers */
    GD_HIT_NOT_CAPTURED = 256, /* the value did not outlive its operator */
    GD_HIT_NO_FIGURE = 512,    /* a statistic is undefined for this value (a cosine with 0) */
    GD_HIT_PREVIOUS_NOT_FINITE = 1024, /* NaN or Inf in the previous step's value */
    GD_HIT_GUARD_UNKNOWN = 2048,       /* it would fire, but its guard is unknown */
    /* Nothing is wrong. The first is never reported, the second only where the selector names the
     * node. */
    GD_HIT_NOT_RUN = 4096, /* its operator has not run in this step */
    GD_HIT_GONE = 8192,    /* what the node represents no longer exists */
};
struct gd_condition;
struct gd_hit {
    int watchpoint;
    int condition; /* wire number; GD_WIRE_OWN for gradb's own */
    /* NULL: an expression, or reported by a process that gives only the wire number */
    const struct gd_condition *kind;
    char expression[96]; /* of the watchpoint, when kind is NULL; else "" */
    char event[16];      /* of a catchpoint: the event; else "" */
    bool traced;         /* the watchpoint only reports */
    bool once;           /* it is temporary and was ended by this hit */
    bool is_scalar;      /* node_name is the name of a metric */
    int64_t step;
    uint64_t stop_sequence; /* of the stop it belongs to */
    gd_node_id node;        /* GD_NO_NODE when the graph lacks it */
    char node_name[512];
    char slot_name[16]; /* "0", "in0"; filled by the engine */
    uint32_t slot;
    bool frozen;    /* a weight that was not trainable when first seen; filled by the engine */
    unsigned error; /* enum gd_hit_error; not 0: it could not be checked */
    struct gd_hit_param param[GD_MAX_HIT_PARAMS];
    int param_count;
};

struct gd_session {
    struct gd_debugger *debugger;
    struct gd_target *target; /* NULL after it ended */
    struct gd_graph *graph;   /* never NULL */
    int number; /* 1, 2, ... in order of appearance; what `rank N` and `info ranks` call it */
    enum gd_state state;
    struct gd_stop stop; /* the current stop; while running, the last one */
    int64_t reached;     /* the newest reported step; read it with gd_session_step */
    struct gd_peer peer;
    struct gd_scalar scalar[GD_MAX_SCALARS];
    int scalar_count;
    struct gd_timing timing;
    struct gd_step_times step_times; /* of the last step that reported them */
    struct gd_time_report *times;    /* of all that did; NULL: none. gd_session_times */
    struct gd_timeline *timeline;    /* when that was; NULL: unknown */
    uint8_t settings_sent;  /* bits of launch/measuring.c: what the process was asked for */
    uint8_t settings_known; /* the same: of which it was asked at all */
    struct gd_hit *hits;    /* all hits of the session so far, oldest first; at most max-hits */
    size_t hit_count;
    size_t hits_dropped;
    struct gd_event_log events; /* of gd_session_on_event */
    struct {                    /* what the user changed in the run by hand: gd_session_changed */
        uint64_t count;
        int64_t first_step, last_step;
    } by_hand;
    int fired[GD_MAX_FIRED]; /* numbers of the breakpoints of the last event that fired */
    int fired_count;
    uint64_t hits_generation;  /* grows when hits other than the oldest were removed */
    gd_node_id current;        /* the node for commands without an argument */
    uint64_t graph_generation; /* grows with every commit */
    bool interrupt_asked;
    char end_text[256]; /* why it is LOST or FINISHED */
    bool failed;        /* LOST, or FINISHED because the training failed */
    double began;       /* when it connected, or when its record began: seconds since the epoch */
    struct gd_watching *watching; /* engine/watch/watch_impl.h; NULL before the first watchpoint */
    struct gd_history *history;   /* engine/history/history.h; NULL: none is recorded */
    struct gd_session_impl *impl; /* private to the engine */
};

/* ---- for targets --------------------------------------------------------------------------- */

/* Registers a new session for a target, and takes the target over, also on failure. */
int gd_session_create(struct gd_debugger *debugger, struct gd_target *target,
                      const struct gd_peer *peer, struct gd_session **ret, struct gd_err *err);
/* A session for a recorded training: it is finished from the start, but its target stays and
 * answers fetches and statistics. Takes the target over (also on failure) and, on success, the
 * graph and the history. It becomes the current session. */
struct gd_session_record {
    const struct gd_peer *peer;
    struct gd_graph *graph;     /* committed */
    struct gd_history *history; /* NULL none */
    struct gd_stop stop;        /* where the training was stopped last */
    const char *why;            /* end_text */
    bool stands;                /* it is stopped at `stop` and can move: a dump of many steps */
};
int gd_session_create_record(struct gd_debugger *debugger, struct gd_target *target,
                             const struct gd_session_record *record, struct gd_session **ret,
                             struct gd_err *err);
void gd_session_on_graph(struct gd_session *session); /* nodes were added and committed */
void gd_session_on_running(struct gd_session *session);
/* The process reached or ended this step without a stop. An earlier step than before restarts the
 * count. */
void gd_session_on_step(struct gd_session *session, int64_t step);
/* Fills in the sequence, and the node from node_name or the reverse; moves the cache on when a step
 * ended. session_stop.c says which stops are announced. */
void gd_session_on_stopped(struct gd_session *session, const struct gd_stop *stop);
/* In a record that can go back, a hit replaces the one of the same watchpoint, step and tensor. */
void gd_session_on_hit(struct gd_session *session, const struct gd_hit *hit);
/* A whole value that the target received for another request: later questions for it are answered
 * from the cache. */
void gd_session_keep(struct gd_session *session, const struct gd_tensor_ref *ref,
                     struct gd_tensor *tensor, int64_t step);
/* Something worth reporting: "skipped-step", "loss-scale", "graph-changed", "warning". It is kept
 * in session->events, for `info events`, and observers receive it. */
void gd_session_on_event(struct gd_session *session, const char *kind, const char *text,
                         int64_t step, gd_node_id node);
/* The user has changed the run by hand: an event of kind "set", and from now on the session says
 * so.
 */
void gd_session_changed(struct gd_session *session, const char *text);
/* A step has ended, with its slowest operators; and each of its operators, before that. */
void gd_session_on_step_times(struct gd_session *session, const struct gd_step_times *times);
void gd_session_on_op_time(struct gd_session *session, int64_t step, const struct gd_op_time *op);
/* What the process knows about its times, as JSON: docs/protocol.md. Bad text is ignored. */
void gd_session_on_time_facts(struct gd_session *session, const char *json);
/* The report of the session's times, created if there is none yet. */
int gd_session_times(struct gd_session *session, struct gd_time_report **ret, struct gd_err *err);
/* The metric of that name; NULL: never reported. */
const struct gd_scalar *gd_session_scalar(const struct gd_session *session, const char *name);
/* How many micro-batches the last step had; 0: unknown, as where several optimizers step in turn.
 */
int gd_session_micro_batches(const struct gd_session *session);
/* The number of a node's micro-batch, from 1; 0: it belongs to none, or to all, or a step has only
 * one. */
int gd_session_micro_batch(const struct gd_session *session, gd_node_id node);
/* "[2/4]", or "[2]" before the first step has told how many there are; "": as 0 above. */
void gd_session_micro_batch_text(const struct gd_session *session, gd_node_id node, char *ret,
                                 size_t size);
/* Whether an attribute of the node says something: not its micro-batch where a step has one. */
bool gd_session_shows_attr(const struct gd_session *session, gd_node_id node,
                           const struct gd_attr *attr);
void gd_session_on_scalar(struct gd_session *session, const char *name, double value, int64_t step);
/* The same when the step has ended: it is new where the next one ends. */
void gd_session_on_late_scalar(struct gd_session *session, const char *name, double value,
                               int64_t step);
/* The metric was deleted: until it is reported again, it is as if it had never been. */
void gd_session_forget_scalar(struct gd_session *session, const char *name);
/* Of a record that can go back: it forgets all metrics, and recalls those up to its step. Nothing
 * is judged. */
void gd_session_forget_scalars(struct gd_session *session);
void gd_session_recall_scalar(struct gd_session *session, const char *name, double value,
                              int64_t step);
/* Records metrics from now on; otherwise the history begins with the first value that is watched.
 */
void gd_session_keep_history(struct gd_session *session);
/* a line of the training's output */
void gd_session_on_log(struct gd_session *session, const char *text);
void gd_session_on_warning(struct gd_session *session, const char *text); /* shown to the user */
/* The training ended, was killed, or was detached. The target is destroyed after the current event,
 * never inside this call. */
void gd_session_on_finished(struct gd_session *session, const char *why);
void gd_session_on_failed(struct gd_session *session, const char *why); /* the same, by an error */
void gd_session_on_lost(struct gd_session *session, const char *why);

/* ---- for front ends ------------------------------------------------------------------------ */

/* Values through the cache: answered at once if this stop's value is known. Lost and finished
 * sessions answer from the cache only (GD_ENODATA if it is not there). Callback as in target.h. If
 * the target has no `stats`, they are computed here from the fetched tensor. */
int gd_session_fetch(struct gd_session *session, const struct gd_tensor_ref *ref,
                     const struct gd_slice *slice, gd_tensor_fn fn, void *ctx, struct gd_err *err);
int gd_session_stats(struct gd_session *session, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                     void *ctx, struct gd_err *err);
/* GD_EV_PRINT: hold_print announces an answer to the engine, and printed says that it has come: the
 * session runs on. Values can be fetched in between, although the session counts as running; a
 * session that ended meanwhile is left alone. */
void gd_session_hold_print(struct gd_session *session);
void gd_session_printed(struct gd_session *session);
/* Whether gd_session_stats would fetch the whole value and compute its statistics inside a callback
 * of the target. A front end that shows progress fetches the value itself instead, and computes
 * with gd_session_stats_of. */
bool gd_session_computes_stats(const struct gd_session *session, const struct gd_tensor_ref *ref);
/* Statistics of `tensor`, the whole value of `ref` at `step`, against the previous value if the
 * session holds it. They are kept for later questions unless the session moved meanwhile.
 * options->go_on may run the loop. Errors as gd_stats_compute. */
int gd_session_stats_of(struct gd_session *session, const struct gd_tensor_ref *ref,
                        struct gd_tensor *tensor, int64_t step,
                        const struct gd_stats_options *options, struct gd_stats *ret,
                        struct gd_err *err);
/* The whole value of `ref` if the session holds it; NULL otherwise. Nothing is asked for. The
 * caller releases the reference. */
struct gd_tensor *gd_session_held(struct gd_session *session, const struct gd_tensor_ref *ref,
                                  int64_t *step);
/* The cache of fetched values: bytes in use, and settings.max_cache after it changed. */
uint64_t gd_session_cached_bytes(const struct gd_session *session);
void gd_session_limit_cache(struct gd_session *session, uint64_t max_bytes);
/* Fetched values may no longer be those of the training process: they are fetched again. */
void gd_session_forget_values(struct gd_session *session);
/* A finished session is forgotten when a new one needs its place (max-sessions), unless it is held.
 * Code that keeps a pointer while the loop runs holds the session, or looks it up again by number.
 * Counted; NULL is fine. */
void gd_session_hold(struct gd_session *session);
void gd_session_release(struct gd_session *session);
bool gd_session_is_live(const struct gd_session *session); /* has a target that can run */
/* The step where it is stopped; while it runs, and after its end, the newest known step. */
int64_t gd_session_step(const struct gd_session *session);
/* It was recorded during the training: it can be read, and nothing more will come. */
bool gd_session_is_record(const struct gd_session *session);

#endif
