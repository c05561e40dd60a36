// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The debugger: all sessions, the selected one, breakpoints, settings, observers. Front ends are
 * given one of these. Single-threaded.
 */
#ifndef GD_ENGINE_DEBUGGER_H
#define GD_ENGINE_DEBUGGER_H

#include "engine/session.h"
#include "engine/settings.h"

struct gd_selector;

enum gd_event_type {
    GD_EV_CONNECTED, /* a session appeared */
    GD_EV_GRAPH,
    GD_EV_RUNNING,
    GD_EV_STOPPED,
    GD_EV_HIT,
    GD_EV_SCALAR,
    GD_EV_LOG,     /* text: a line of the trainer's output */
    GD_EV_WARNING, /* text: a sentence for the user */
    GD_EV_FINISHED,
    GD_EV_LOST,
    GD_EV_SELECTED,    /* another session became current */
    GD_EV_BREAKPOINTS, /* the list changed; session is NULL */
    GD_EV_RANKS,       /* all ranks of the session's job have stopped: engine/ranks.h */
    GD_EV_EVENT,       /* note: something worth reporting happened in the training */
    GD_EV_STACK,       /* gd_session_on_stack */
    GD_EV_PRINT,       /* held at a node with dprintf: gd_session_printed lets it run on */
};
struct gd_note {
    const char *kind; /* "skipped-step", "loss-scale", "graph-changed", "warning", ... */
    const char *text; /* one line, "" if the kind says everything */
    int64_t step;     /* 0 before the first */
    gd_node_id node;  /* GD_NO_NODE: none */
};
struct gd_event {
    enum gd_event_type type;
    struct gd_session *session;
    const char *text;
    const struct gd_hit *hit;
    const struct gd_note *note; /* GD_EV_EVENT */
};
typedef void (*gd_observer_fn)(void *ctx, const struct gd_event *event);

/* The network server as the front end sees it; set by main, so that nothing above the engine
 * includes it. */
struct gd_server_ops {
    /* "HOST:PORT", ":PORT" or "PORT"; port 0 takes a free one. Loopback names listen on 127.0.0.1
     * and ::1. Or "unix:PATH"; there may be one of each. GD_EIO (port in use: says so), GD_EINVAL,
     * GD_ESTATE (already listening, or another gradb is). */
    int (*listen)(void *ctx, const char *address, struct gd_err *err);
    void (*close)(void *ctx);
    const char *(*address)(void *ctx); /* "127.0.0.1:50051", else as `socket`; NULL: none */
    const char *(*socket)(void *ctx);  /* "unix:PATH"; NULL: only TCP, or not listening */
    bool (*serves)(void *ctx); /* serves a detached process that still needs it; may be NULL */
};

/* Opens what a training left behind, a file or a directory, as sessions (gd_session_create_record),
 * one per rank; *ret is the first. Set by main. GD_ENOTFOUND, GD_EIO; GD_EPROTO: no known format,
 * names those that can be opened; GD_EINTR. */
struct gd_open_options {
    const char *format; /* only this format; NULL: whichever is found */
    const char *key;    /* of a checkpoint: the inner dictionary with the weights; NULL: all */
    const char *dtype;  /* the type of ambiguous elements; NULL: they are refused */
    bool partial;       /* of a truncated file: what there is */
    bool (*go_on)(void *ctx, uint64_t done); /* called now and then; NULL: no one */
    void *ctx;
};
typedef int (*gd_open_fn)(struct gd_debugger *debugger, const char *path,
                          const struct gd_open_options *options, struct gd_session **ret,
                          struct gd_err *err);

/* Runs the event loop once, waiting at most max_seconds (< 0: without limit). */
typedef void (*gd_pump_fn)(void *ctx, double max_seconds);

struct gd_breakpoint {
    int number;
    char *where; /* as typed: a node name or a selector */
    struct gd_selector *selector;
    bool enabled;
    bool temporary;
    uint64_t hits;
    uint64_t ignore;       /* passes left to ignore */
    bool caused;           /* it is why the current session is stopped here */
    char *print;           /* dprintf: what to print, as typed after the place; NULL: it stops */
    struct gd_expr *guard; /* of a dprintf or an event: only if it is true; NULL: always */
    bool warned;           /* warned that a name in it now means several nodes */
    bool momentary;        /* of `until`: the next stop deletes it */
    bool matched;          /* some process or record has had a node or a line for it */
    struct gd_line *line;  /* engine/line/line.h; NULL: only at nodes */
    /* Of an event (event/happening.h), with no selector: */
    enum gd_happening event; /* GD_NO_HAPPENING: at nodes */
    char *command;           /* of `on`; NULL: it stops the training */
    int64_t every, seen;     /* fires at each of so many events; how many there were */
    int waited;              /* how often in a row its command needed a value that was not there */
    bool told_unknown;       /* warned that the guard is unknown */
    bool tested;             /* the target tests by itself when the guard may be true */
    struct gd_breakpoint *next;
};

struct gd_debugger {
    struct gd_session **sessions; /* oldest first */
    size_t session_count;
    struct gd_session *current;        /* NULL before the first */
    struct gd_breakpoint *breakpoints; /* by number */
    int next_breakpoint;               /* shared with watchpoints */
    struct gd_watchpoint *watchpoints; /* engine/watch/watchpoint.h */
    uint64_t cost_round;               /* of gd_watch_costs */
    struct gd_exclude *excludes;       /* engine/watch/watch_exclude.c */
    struct gd_settings settings;
    bool interrupted; /* the user pressed Ctrl-C; cleared by the code that acts on it */
    const struct gd_server_ops *server;
    void *server_ctx;
    gd_open_fn open_file; /* NULL: nothing can be opened */
    /* Long work inside a call (statistics of a tensor on disk) calls this now and then with the
     * bytes done and the total; it may run the loop. false: stop. NULL: no one is waiting. */
    bool (*meanwhile)(void *ctx, uint64_t done, uint64_t total);
    void *meanwhile_ctx;
    gd_pump_fn pump;
    void *pump_ctx;
    double (*now)(void *ctx); /* seconds since the epoch */
    void *now_ctx;
    struct gd_debugger_impl *impl; /* observers, dead targets */
};

int gd_debugger_create(struct gd_debugger **ret, struct gd_err *err);
void gd_debugger_destroy(struct gd_debugger *debugger);

/* Observers are called in order of registration; fn must not register or remove. The engine's own
 * watchpoints follow an event after all observers (gd_watchpoints_on_event). */
int gd_debugger_observe(struct gd_debugger *debugger, gd_observer_fn fn, void *ctx);
void gd_debugger_unobserve(struct gd_debugger *debugger, gd_observer_fn fn, void *ctx);
void gd_debugger_emit(struct gd_debugger *debugger, const struct gd_event *event);

/* Destroys targets that ended; the loop calls it between events. */
void gd_debugger_reap(struct gd_debugger *debugger);

/* Work that targets have left (gd_target_ops.work); does it for about that many seconds. */
bool gd_debugger_has_work(const struct gd_debugger *debugger);
void gd_debugger_work(struct gd_debugger *debugger, double seconds);

int gd_debugger_select(struct gd_debugger *debugger, int session_number, struct gd_err *err);
struct gd_session *gd_debugger_session(struct gd_debugger *debugger, int number);
/* The current session, or GD_ESTATE with what to do ("no training process is connected: ..."). */
int gd_debugger_need_session(struct gd_debugger *debugger, struct gd_session **ret,
                             struct gd_err *err);

/* Breakpoints are resolved and sent again whenever a graph or the list changes. A `where` that
 * matches nothing yet stays pending. GD_EINVAL: it does not parse. GD_EAMBIGUOUS: a name in it is
 * ambiguous in the current session; if it becomes so later, the session warns. */
int gd_debugger_break(struct gd_debugger *debugger, const char *where, bool temporary,
                      struct gd_breakpoint **ret, struct gd_err *err);
/* The same for one that does not stop: at its nodes the session is held, which from outside looks
 * like running, and GD_EV_PRINT is emitted. Observers that print fetch what they need and call
 * gd_session_printed once; without any the run continues at once. `print` and `guard` (NULL or "":
 * none) are copied. GD_EINVAL also for the guard. */
int gd_debugger_dprintf(struct gd_debugger *debugger, const char *where, const char *print,
                        const char *guard, struct gd_breakpoint **ret, struct gd_err *err);
int gd_breakpoint_set_guard(struct gd_breakpoint *breakpoint, const char *guard,
                            struct gd_err *err);
/* The next dprintf, after `previous`, that covers the node at which the session is held; NULL: no
 * more. */
struct gd_breakpoint *gd_session_next_print(struct gd_session *session,
                                            const struct gd_breakpoint *previous);
/* A dprintf was reached and its guard holds: counts it. False: it is to be ignored this time. */
bool gd_breakpoint_reached(struct gd_breakpoint *breakpoint);
/* A node that a selector of the breakpoint covers does not count: a dprintf of a scope prints when
 * its operators run, not for the weights and gradients in it. */
bool gd_breakpoint_skips(const struct gd_breakpoint *breakpoint, const struct gd_graph *graph,
                         gd_node_id node);
int gd_debugger_delete_breakpoint(struct gd_debugger *debugger, int number, struct gd_err *err);
int gd_debugger_enable_breakpoint(struct gd_debugger *debugger, int number, bool enable,
                                  struct gd_err *err);
struct gd_breakpoint *gd_debugger_breakpoint(struct gd_debugger *debugger, int number);
/* Resolves settings.keep_previous again and sends it to every live process; call it when the
 * setting changed. GD_EINVAL: not a selector; nothing was sent. */
int gd_debugger_apply_keep_previous(struct gd_debugger *debugger, struct gd_err *err);
/* The first enabled breakpoint that covers the node, or NULL. */
struct gd_breakpoint *gd_debugger_breakpoint_at(struct gd_debugger *debugger,
                                                struct gd_session *session, gd_node_id node);

#endif
