// SPDX-License-Identifier: MIT
/*
 * The state of libgradb.
 *
 * Two threads share it. The training thread calls gradb.h (agent_turn.c admits one caller at a
 * time); the I/O thread (agent_io.c) owns the socket and everything in struct agent_io. `lock`
 * guards the rest, with two exceptions: the atomic words that the hooks read without it; and the
 * program's tensors and the node table, which the I/O thread reads without the lock while `stopped`
 * is set. Only the I/O thread clears `stopped`, so the training thread stays stopped while it
 * reads.
 *
 * Who may wait for whom (there is no cycle):
 *   - nobody holds `lock` while waiting for anything but `go`, or while code of the program (the
 *     source, agent_source.h) runs;
 *   - the I/O thread takes `lock` and nothing else, waits for nobody and never calls the source: it
 *     leaves requests to the stopped thread (agent_serve.c) and sends heartbeats meanwhile;
 *   - the holder of the turn may wait for the I/O thread (a stop, a verdict, gradb_sync) and for
 *     locks of the program (inside the source); a thread waiting for the turn holds nothing of
 *     ours;
 *   - gradb_scalar, gradb_log and other functions that only send take `lock` but no turn: they may
 *     be called at any time from any thread, also from inside the source.
 *
 * A forked child has no I/O thread: every entry point checks `pid` before it touches the lock,
 * which may have been held at the time of the fork. A child forked inside a call into the source
 * returns from it into libgradb; agent_fork.c has reinitialised the lock and resumed the thread.
 */
#ifndef GRADB_AGENT_STATE_H
#define GRADB_AGENT_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "agent/gradb.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/tensor.h"
#include "gradb_v1.pb-c.h"

#define AGENT_PROTOCOL     1U                   /* the only version of gradb.v1 that we speak */
#define AGENT_MAX_SLOTS    4096                 /* outputs of one node */
#define AGENT_MAX_SCALARS  4096                 /* queued; older ones are dropped */
#define AGENT_MAX_TIMES    1024                 /* queued; older ones are dropped */
#define AGENT_MAX_LOG      1024                 /* queued lines; newer ones are dropped */
#define AGENT_MAX_LINE     4096                 /* bytes of a log line */
#define AGENT_MAX_REQUESTS 65536                /* unanswered requests */
#define AGENT_CHUNK        ((size_t)256 * 1024) /* bytes of a value or graph per message */
#define AGENT_MAX_REPORTS  ((size_t)64 << 20)   /* bytes of queued watch reports */

typedef Gradb__V1__ToTrainer agent_to;

enum agent_link { LINK_DOWN, LINK_CONNECTING, LINK_HELLO, LINK_UP };

enum agent_node_flag {
    NODE_BREAK = 1 << 0,
    NODE_KEEP = 1 << 1,       /* named by KeepPrevious */
    NODE_KEEP_WATCH = 1 << 2, /* a watch plan compares with the previous step */
    NODE_CAPTURE = 1 << 3,
    NODE_OUTPUT_NEW = 1 << 4,    /* a slot's dtype or shape changed since it was sent */
    NODE_CAPTURE_WATCH = 1 << 5, /* a watch plan examines it at the end of the step */
    NODE_WATCH_EXACT = 1 << 6,   /* a watch plan examines it when it has run */
    NODE_WATCH_SEEN = 1 << 7,    /* a watch plan needs the step in which it ran */
    NODE_LASTS = 1 << 8,         /* gradb_lasts */
    NODE_LEFT_OUT = 1 << 9,      /* requested by Capture, but there was no memory for a copy */
    NODE_INPUTS_NEW = 1 << 10,   /* gradb_set_inputs was called since they were sent */
    NODE_ATTRS_NEW = 1 << 11,    /* gradb_set_attr was called since they were sent */
    NODE_MOMENTARY = 1 << 12,    /* gradb_momentary */
    NODE_WATCH_END = 1 << 13,    /* a watch plan examines it at the end of the step */
    NODE_METRIC = 1 << 14,       /* a metric copies its values */
};

enum agent_mark {                 /* of a node whose runs must be reported */
                  MARK_SLOW = 1,  /* must not take the fast path */
                  MARK_RUN = 2,   /* gradb_wants: report that it ran */
                  MARK_VALUE = 4, /* report its outputs */
                  /* a new node: report it as soon as its value is not finite */
                  MARK_NOT_FINITE = 8,
                  MARK_END = 16, /* gradb_wants_at_end */
};

/* A copy of a value in C order. */
struct agent_copy {
    void *data;
    size_t capacity;
    bool valid;
    enum gd_dtype dtype;
    struct gd_shape shape;
    int64_t step;
};

struct agent_slot {
    const void *data;
    int64_t *geometry;     /* rank dimensions, then rank strides in bytes */
    uint8_t geometry_rank; /* capacity of `geometry` */
    uint8_t dtype;
    uint8_t rank;
    bool bound;
    bool checked;                /* an address with this type and shape was given */
    int64_t empty_step;          /* step in which the node ran without producing this tensor */
    struct agent_copy *previous; /* NULL until kept */
    struct agent_copy *captured; /* NULL until captured */
};

struct agent_events;     /* agent_event.c */
struct agent_watch_item; /* agent_watch.h */
struct agent_watch_plan;
struct agent_metrics;   /* agent_metric.h */
struct agent_line_stop; /* agent_line.h */

struct agent_node {
    const char *name, *type;
    gradb_input *inputs;
    const gradb_attr *attrs;
    const gradb_frame *frames;
    struct agent_slot *slots;
    struct agent_watch_item *watch; /* items of all plans on this node */
    uint32_t input_count, input_room, attr_count, frame_count, slot_count;
    uint8_t kind, phase;
    uint16_t flags;
    int64_t first_step; /* the earliest step in which it can have run */
    gradb_node twin_of; /* with NODE_METRIC, the node that it is in an evaluation; 0: none */
    uint64_t told;      /* moment at which exact plans last examined it; 0: never */
};

/* The data touched whenever a node runs, separate from the rest: a graph may have many nodes, of
 * which few are inspected. */
struct agent_pass {
    _Atomic int64_t ran_step; /* last step in which it ran, if recorded; 0: never */
    uint8_t phase;            /* of the node */
    atomic_uchar marked;      /* enum agent_mark; read without the lock */
};

struct agent_late_input { /* from gradb_add_inputs */
    gradb_node node;
    gradb_input input;
};

struct agent_packet { /* a packed FromTrainer message for the I/O thread */
    struct agent_packet *next;
    int64_t step; /* the step it reports about */
    size_t len;
    unsigned char data[];
};

struct agent_scalar {
    char name[64];
    double value;
    int64_t step; /* that it belongs to */
    int64_t when; /* the running one when it was reported */
    bool late;    /* its step had ended */
};

struct agent_times { /* of a step, without the times of its nodes */
    gradb_times times;
    double compiled;
    int64_t step;
};

struct agent_run { /* what the debugger has allowed the run to do */
    enum { RUN_FREE, RUN_STEP, RUN_NEXT, RUN_TO, RUN_FINISH } kind;
    int64_t left;    /* for RUN_NEXT */
    uint64_t due;    /* for RUN_STEP: agent.begun at the last step */
    gradb_node node; /* for RUN_TO */
    uint32_t phase;  /* for RUN_FINISH: the phase to leave; 0: the next one */
};

struct agent_capturing { /* the Capture request and its progress */
    bool all;
    size_t count;
    int64_t first, last; /* steps in which to copy; last 0: all */
    uint64_t most;       /* bytes allowed by the debugger; 0: no limit */
    bool active;         /* the current step is one of them */
    bool held;           /* copies were made or left out */
    uint64_t bytes, limit;
};

struct agent_stop { /* why the training thread is stopped */
    Gradb__V1__StopReason reason;
    int64_t step;
    bool at_step_end;
    gradb_node node;
    uint32_t phase;
    char text[1024];
    uint64_t report;
};

struct agent {
    struct gradb pub;  /* first: the handle is a pointer to it */
    _Atomic pid_t pid; /* the process that opened it; 0 in a forked child */
    /* A word that the kernel clears in any forked child; NULL where it cannot: see agent_fork.c */
    atomic_int *alive;

    /* Read by the hooks without the lock */
    atomic_int quick;       /* only marked nodes are of interest */
    atomic_int attention;   /* the debugger wants something at a step boundary or phase change */
    _Atomic uint64_t due;   /* also at the end of the step with this `begun`; UINT64_MAX: none */
    atomic_int connected;   /* the link is up */
    _Atomic int64_t step;   /* last step begun */
    _Atomic uint64_t begun; /* number of steps begun: a program may repeat step numbers */
    atomic_int in_step;
    _Atomic int64_t ended; /* last step that ended */
    atomic_uint phase;
    atomic_int entered; /* the step has entered a phase */
    atomic_int wants_stop;
    atomic_int wants_checkpoint;
    atomic_int has_metrics;

    /* The lock and the two threads */
    pthread_mutex_t lock;
    /* Signalled when stopped, verdict.awaited, sync.seen, the ask, the turn or the link changes */
    pthread_cond_t go;
    bool has_lock;
    pthread_t thread;
    int wake[2];      /* a pipe: a byte wakes the I/O thread */
    bool thread_done; /* the I/O thread no longer uses the agent */
    bool orphan;      /* nobody will join: the I/O thread frees the agent */

    /* The turn: agent_turn.c */
    bool taken;
    pthread_t holder;
    unsigned turn_waiters;

    /* The program's own answers: agent_source.h. Functions may be NULL. */
    gradb_source source;
    bool calling;          /* the holder of the turn is inside the source */
    bool located;          /* the source located a value since the last release */
    bool looking;          /* the program is inside gradb_on_look's call */
    struct agent_ask *ask; /* NULL without a source */
    _Atomic int
        given_up; /* the debugger does not wait for the running request, see gradb_given_up */

    /* Options of gradb_open */
    char *framework, *framework_version, *device, *program, *graph_name, *address, *token;
    char *job;
    int rank, world_size, local_rank;
    int threads; /* for statistics of large values */
    bool address_given;
    bool started_by_gradb; /* by the debugger at that address, so its user knows who stops it */
    bool refused_told;     /* the refusal of a debugger has been reported */
    char stopped_by[320];  /* the debugger, to be named at the first stop; "": do not */

    /* Called when `armed` leaves 0; NULL: nobody asked */
    void (*on_armed)(void *);
    void *on_armed_ctx;
    void (*on_look)(void *, const gradb_ask *, size_t); /* see gradb_on_look; NULL */
    void *on_look_ctx;

    /* The graph; strings are in the arena */
    struct gd_arena arena;
    struct agent_node *nodes;          /* nodes[0] is unused */
    struct agent_pass *_Atomic passes; /* by id; the hooks read it without the lock */
    struct agent_pass *old_passes[32]; /* outgrown tables: a hook may still be reading one */
    unsigned old_pass_count;
    _Atomic uint32_t node_count; /* including nodes[0]: the next id */
    uint32_t node_capacity;
    uint32_t published; /* ids below this may be sent */
    struct agent_late_input *late;
    size_t late_count, late_capacity, late_published;
    bool outputs_new;             /* some node has NODE_OUTPUT_NEW */
    bool inputs_new;              /* some node has NODE_INPUTS_NEW */
    bool attrs_new;               /* some node has NODE_ATTRS_NEW */
    _Atomic gradb_node last_node; /* last node that ran in this step; 0: unknown */
    /* Of events at the end of steps: a number satisfies a test; the first step that may. */
    atomic_int event_due;
    _Atomic int64_t event_step;
    atomic_int evaluates;  /* between two steps: what runs is not of the running step */
    _Atomic int64_t as_of; /* gradb_as_of; negative: not set */

    /* What stops the run */
    enum agent_link link;
    unsigned attempts; /* failed connection attempts since the start */
    struct agent_run run;
    struct {
        bool wanted;
        uint64_t heard; /* when; 0: the delay has been explained already */
        int64_t at;     /* stop at the end of this step, or the first one after it; 0: none */
    } interrupt;
    bool stop_pending; /* stop at the next step boundary: a debugger connected */
    bool hold;         /* Welcome.on_loss */
    bool hold_pending; /* stop at the next step boundary: the debugger is gone */
    uint32_t break_count;
    struct {          /* new nodes that the debugger waits for */
        char **names; /* parts of their names */
        size_t count;
        bool not_finite;   /* also any new node with a non-finite value */
        atomic_int at_end; /* gradb_wants_new */
        bool added;        /* one of them was added since gradb_sync */
    } expected;

    /* Which values are copied */
    struct agent_capturing capturing;
    struct {               /* previous values */
        gradb_node *nodes; /* with NODE_KEEP or NODE_KEEP_WATCH; copied here */
        size_t count;
        gradb_node *asked; /* kept by the source */
        size_t asked_count;
        bool asked_new; /* the source does not know the current `asked` yet */
        bool stale;     /* a slot was bound or unbound since */
        uint64_t ns;    /* time that copying took last */
    } kept;

    /* Watch plans */
    struct agent_watch_plan *plans;
    uint64_t plan_serial, moments;         /* how many there were */
    uint64_t plan_changes;                 /* of the set of plans */
    uint64_t graph_changes;                /* of inputs and attributes of nodes */
    struct agent_watch_item *scalar_items; /* on named scalars */
    /* items examined when their node has run, at the end of the step, and those at the end of the
     * step for which it matters whether the node ran */
    size_t exact_items, end_items, seen_items;
    struct agent_group *group; /* private to agent_watch.c; NULL until needed */
    bool hears_all;            /* every node reports, marked or not */
    bool sees_nodes;           /* every node that runs is recorded */
    int64_t seen_from;         /* since the beginning of this step */
    /* While plans are walked, with calls into the source in between, messages that change what is
     * asked of nodes wait in `later`; and plans that take effect together, until the last is there.
     */
    bool passing;
    agent_to **later;
    size_t later_count, later_cap;
    bool later_open;  /* the last of them is not there yet */
    bool clear_later; /* first forget what a lost debugger asked for */

    struct agent_metrics *metrics; /* NULL: none */
    bool metric_nodes;             /* some node has NODE_METRIC */
    struct agent_events *events;   /* NULL: the debugger has never waited for one */

    struct {               /* agent_line.c */
        agent_to *message; /* a LineBreaks that the program does not know yet; owned */
        bool clear;        /* it is to forget its lines: the debugger is gone */
        bool known;        /* it has some */
        const struct agent_line_stop *stop; /* during a stop at a line */
    } lines;

    struct { /* gradb_sync */
        bool supported;
        uint64_t wanted, seen; /* commits that the training thread waits for; seen so far */
        uint32_t nodes;
        size_t late;
    } sync;

    /* The current stop, and verdicts on reports */
    bool stopped;
    bool stop_sent; /* the debugger knows of `stop` */
    struct agent_stop stop;
    uint64_t report_id;
    /* Holding reports of one moment are answered in order, some while the source still computes
     * the next ones. Report ids; 0: none. */
    struct {
        uint64_t first;   /* of the moment */
        uint64_t seen;    /* answered last */
        uint64_t awaited; /* by the training thread */
        uint64_t stop;    /* whose verdict was to stop */
        bool meant;       /* all so far said that what was reported is meant to be */
        char text[160];
    } verdict;
    bool closing;
    char close_text[256];

    /* Outgoing messages */
    struct agent_scalar *scalars;
    size_t scalar_count;
    uint64_t scalars_told; /* since the debugger connected, with those that wait */
    struct agent_times *times;
    size_t times_count;
    double compiled; /* of the step whose times come next */
    char **log;
    size_t log_count;
    uint64_t log_dropped;
    struct agent_packet *reports, **reports_end;
    size_t reports_bytes;

    char error[256];
    char error_out[256];

    atomic_int socket;   /* of the I/O thread; -1: none; a forked child closes it */
    struct agent_io *io; /* owned by the I/O thread */
};

/* Relaxed: a reader only needs to see the other thread's write soon, and takes the lock before it
 * acts. */
#define PEEK(word)    atomic_load_explicit(&(word), memory_order_relaxed)
#define POKE(word, v) atomic_store_explicit(&(word), (v), memory_order_relaxed)

/* Why a request is refused; -1 means that it is not. */
#define CODE(name) ((int)GRADB__V1__REQUEST_ERROR__CODE__##name)

/* The step that is named for something of `step`: what an evaluation computes in the step that has
 * just begun belongs to the one before it. */
static inline int64_t agent_said_step(const struct agent *a, int64_t step)
{
    bool apart = PEEK(a->evaluates) && PEEK(a->in_step) && step == PEEK(a->step);
    return apart ? PEEK(a->ended) : step;
}

static inline struct agent *agent_of(gradb *g)
{
    return (struct agent *)(void *)g;
}

#endif
