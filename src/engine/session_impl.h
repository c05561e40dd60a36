// SPDX-License-Identifier: GPL-3.0-or-later
/* The private halves of a session and of the debugger, shared by the files of src/engine itself. */
#ifndef GD_ENGINE_SESSION_IMPL_H
#define GD_ENGINE_SESSION_IMPL_H

#include "engine/debugger.h"
#include "engine/hash_index.h"

struct gd_ranks;        /* engine/ranks.h */
struct gd_cache;        /* engine/cache.h */
struct session_request; /* engine/session_request.h */

struct session_site { /* a node that a breakpoint covers; sorted by node, then number */
    gd_node_id node;
    int number;
};

struct session_rank { /* what ranks.c keeps per session; ranks NULL: it is alone in its job */
    struct gd_ranks *ranks;
    int verdict; /* enum breakpoint_verdict of a stop that is not announced yet */
    bool owes;   /* it moved or stopped since the last settling: its stop is to be announced */
    bool cause;  /* it stopped by itself, not for the other ranks */
    bool solo;   /* it was moved alone: its next stop does not concern the others */
    bool lent;   /* its run is a piece of the job's, also when the others have ended since */
    bool hit;    /* a watchpoint on a metric over ranks fired: it stops at the end of the step */
    bool quiet;  /* it continues from one boundary to the next, without events */
};

struct session_lines { /* line.c */
    int *sent;         /* numbers of the breakpoints that the target knows */
    size_t sent_count;
    int number[GD_MAX_FIRED]; /* at the line of the stop */
    size_t number_count;
    struct gd_frame *frame; /* its stack */
    size_t frame_count;
    uint64_t asked; /* sequence of the stop at which the process was asked for the stack; 0: it came
                       with the line */
    uint64_t begun; /* the same, while the answer is on its way or was useless */
};

struct gd_session_impl {
    struct gd_cache *cache; /* of fetched values */
    struct session_request *requests;
    struct session_rank rank;
    unsigned holds; /* gd_session_hold */
    double since;   /* when the present state began, by the debugger's clock */
    /* the last requested run, to continue after an ignored breakpoint */
    struct gd_run run;
    char run_name[512];
    struct gd_stop run_from; /* where it started */
    bool has_run;
    int64_t interrupt_at; /* a stop was asked for at the end of this step; 0 none */
    bool resuming;        /* inside a silent resume: the loop there handles a stop that comes now */
    /* asked to evaluate again without moving: the next stop passes no breakpoint */
    bool rechecking;
    bool has_deferred;
    /* held at a node with dprintf: observers that have not printed yet */
    unsigned printing;
    int print_verdict; /* enum breakpoint_verdict of that stop */
    enum gd_stop_reason print_reason;
    struct gd_stop deferred;
    size_t hit_cap;
    struct gd_hash_index hit_index; /* of a record that can go back */
    /* what the target was sent */
    struct session_site *sites;
    size_t site_count, site_cap;
    uint32_t sites_limit;   /* nodes below it are resolved; 0: none, or some failed */
    uint64_t sites_changes; /* of the graph's nodes, at that time */
    gd_node_id *pushed;
    size_t pushed_count;
    gd_node_id *kept;
    size_t kept_count;
    uint32_t kept_limit; /* as for the sites */
    uint64_t kept_changes;
    bool warned_breakpoints, warned_keep, warned_expected;
    bool history_failed, history_warned; /* history_session.c */
    struct session_lines lines;
    struct gd_happened happened; /* the last event of event/happening.h */
    bool awaits;                 /* its verdict waits for metrics over ranks */
    bool undecided;              /* they are unknown, during the verdict */
    double awaits_since;
    bool has_wishes;   /* the target waits at some */
    bool rough_wishes; /* it may have reported numbers that they do not know */
};

struct debugger_observer {
    gd_observer_fn fn;
    void *ctx;
};

struct gd_debugger_impl {
    struct debugger_observer *observers;
    size_t observer_count, observer_cap;
    /* gd_watchpoints_on_event: the engine's own observer, after the others */
    void (*on_event)(struct gd_debugger *debugger, const struct gd_event *event);
    bool ending; /* gd_debugger_destroy: no more events */
    struct gd_target *dead;
    struct gd_ranks *ranks;       /* engine/ranks.h: all jobs so far */
    struct gd_progress *progress; /* engine/progress.h: running work, oldest first */
    size_t session_cap;
    int next_session;
};

static inline double debugger_now(const struct gd_debugger *debugger)
{
    return debugger->now ? debugger->now(debugger->now_ctx) : 0;
}

/* The target ended: it is destroyed by the next gd_debugger_reap. */
void debugger_bury(struct gd_debugger *debugger, struct gd_target *target);
/* Adds the session to the list, making room first. GD_ELIMIT. */
int debugger_add_session(struct gd_debugger *debugger, struct gd_session *session,
                         struct gd_err *err);

void session_emit(struct gd_session *session, enum gd_event_type type, const char *text,
                  const struct gd_hit *hit);
bool session_has_ended(const struct gd_session *session);
/* Makes it the current one; emits GD_EV_SELECTED if another one was. */
void session_make_current(struct gd_session *session);
/* Fills the stop's node from its name, or the name from the node. */
void session_name_stop(struct gd_session *session, struct gd_stop *stop);

/* Frees a session whose target is destroyed. */
void session_destroy(struct gd_session *session);
/* The session has ended: answers all requests with the error. */
void session_fail_requests(struct gd_session *session, const struct gd_err *err);
/* Its target was destroyed, so no answer can come any more: frees the requests. */
void session_drop_requests(struct gd_session *session);

/* Resolves all breakpoints against the session's graph and sends them to the target if they
 * changed. */
void breakpoints_push(struct gd_session *session);
/* The same after the graph grew: its cost depends only on the number of new nodes. */
void breakpoints_grow(struct gd_session *session);
/* The process stops at its line, not at nodes. */
bool breakpoint_is_at_line(const struct gd_session *session,
                           const struct gd_breakpoint *breakpoint);
void breakpoints_free(struct gd_debugger *debugger);
/* Takes the new one into the list. */
void breakpoints_add(struct gd_debugger *debugger, struct gd_breakpoint *breakpoint);
void breakpoints_changed(struct gd_debugger *debugger);
void breakpoint_free(struct gd_breakpoint *breakpoint); /* NULL is fine */

enum breakpoint_verdict { BREAKPOINT_NONE, BREAKPOINT_STOP, BREAKPOINT_IGNORE };

/* line.c. Sends the target the lines of the breakpoints; the run is about to execute a line: counts
 * that for its breakpoints. */
void lines_push(struct gd_session *session);
enum breakpoint_verdict lines_pass(struct gd_session *session);
/* A dprintf is at the line; the next one after `previous`. */
bool lines_print(const struct gd_session *session);
struct gd_breakpoint *lines_next_print(const struct gd_session *session,
                                       const struct gd_breakpoint *previous);
void lines_delete_temporary(struct gd_session *session);
void lines_free(struct gd_session *session);

/* event/happening.c. Sends the target the events of the breakpoints; settles a stop at one (rest:
 * something is left of the run); deletes the temporary ones that fired. */
void happenings_push(struct gd_session *session);
/* The verdict on the last event, which was put off. */
void happenings_decide(struct gd_session *session);
void happenings_stop(struct gd_session *session, bool rest);
void happenings_delete_temporary(struct gd_session *session);
/* Same for settings.keep_previous. */
void keep_previous_grow(struct gd_session *session);

/* The run passed `node`: counts that for every breakpoint there. */
enum breakpoint_verdict breakpoints_pass(struct gd_session *session, gd_node_id node);
/* Whether an enabled dprintf covers the node. */
bool breakpoints_print(const struct gd_session *session, gd_node_id node);
/* Deletes those of `until`, at any stop. */
void breakpoints_delete_momentary(struct gd_debugger *debugger);
/* Deletes the enabled temporary breakpoints at `node`. */
void breakpoints_delete_temporary(struct gd_session *session, gd_node_id node);

/* Removes the hits of the current stop's step from the list, so that they can be found again. The
 * caller frees them. NULL with *count > 0: out of memory, and they stay in the list. */
struct gd_hit *session_take_hits(struct gd_session *session, size_t *count);
void session_put_back_hit(struct gd_session *session, const struct gd_hit *hit);
/* A report of that step came; it may come after one of a later step. */
void session_reach(struct gd_session *session, int64_t step);
/* Adds the time since the last call to what the session does now, and the steps that a run ended
 * on its way there. */
void session_count_time(struct gd_session *session, const struct gd_stop *to);
/* Emits GD_EV_STOPPED; count the stop first. */
void session_announce(struct gd_session *session, enum breakpoint_verdict verdict);

/* ranks.c. For a new session; for one that stopped, `asked` if an interrupt was asked of it alone
 * (true: ranks.c announces the stop later); for one that ended; before all sessions end with the
 * debugger, so that none is moved because another one ended; and at the very end. */
void ranks_join(struct gd_session *session);
bool ranks_take_stop(struct gd_session *session, enum breakpoint_verdict verdict, bool asked);
void ranks_on_end(struct gd_session *session);
/* What is left of the job's run; false: nothing. */
bool ranks_rest(const struct gd_session *session, struct gd_run *ret);
void ranks_end(struct gd_debugger *debugger);
void ranks_free(struct gd_debugger *debugger);

/* A metric has a new value: the epoch or batch of the step whose times came last. */
void session_note_batch(struct gd_session *session, const struct gd_scalar *scalar);

/* Creates the session's timeline if there is none. False: out of memory. */
bool session_make_timeline(struct gd_session *session);

/* Records a metric in the history, if there is one. */
void session_history_scalar(struct gd_session *session, const char *name, double value,
                            int64_t step);

#endif
