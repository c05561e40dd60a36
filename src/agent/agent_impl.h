// SPDX-License-Identifier: MIT
/*
 * libgradb's inside.
 *
 * Two threads meet here. The training thread calls gradb.h (agent_turn.c: one at a time, if they
 * are several); the I/O thread (agent_io.c) owns the socket and everything in struct agent_io.
 * `lock` guards the rest, with two exceptions: the atomic words that the hooks read without it, and
 * the trainer's tensors and the node table, which the I/O thread reads without the lock while
 * `stopped` is set: only the I/O thread clears that, so the training thread stands for as long as
 * it reads.
 *
 * Who may wait for whom, so that nobody waits in a circle:
 *   - nobody holds `lock` while it waits for anything but `go`, or while the program's own code
 * (the source, agent_source.h) runs;
 *   - the I/O thread takes `lock` and nothing else, waits for nobody and never calls the source: it
 *     leaves requests to the thread that stands (agent_serve.c) and sends heartbeats meanwhile;
 *   - who holds the turn may wait for the I/O thread (a stop, a verdict, gradb_sync) and for the
 *     program's locks (inside the source); who waits for the turn holds nothing of ours;
 *   - gradb_scalar, gradb_log and others that only say something take `lock` and no turn: they may
 * be called at any time from any thread, from inside the source as well.
 *
 * A forked child has no I/O thread: each entry checks `pid` before it touches the lock, which may
 * have been held at the fork. A child that was forked inside a call into the source comes back from
 * it into libgradb: agent_fork.c has made the lock new and let the thread go.
 */
#ifndef GRADB_AGENT_IMPL_H
#define GRADB_AGENT_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "agent/gradb.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/tensor.h"
#include "gradb_v1.pb-c.h"

#define AGENT_PROTOCOL     1U                   /* the one version of gradb.v1 that we speak */
#define AGENT_MAX_SLOTS    4096                 /* outputs of one node */
#define AGENT_MAX_SCALARS  4096                 /* waiting to be sent; older ones are dropped */
#define AGENT_MAX_TIMES    1024                 /* the same */
#define AGENT_MAX_LOG      1024                 /* lines waiting; newer ones are dropped */
#define AGENT_MAX_LINE     4096                 /* bytes of a log line */
#define AGENT_MAX_REQUESTS 65536                /* unanswered requests */
#define AGENT_CHUNK        ((size_t)256 * 1024) /* bytes of a value or of a graph per message */
#define AGENT_MAX_REPORTS  ((size_t)64 << 20)   /* bytes of watch reports waiting */

typedef Gradb__V1__FromTrainer agent_from;
typedef Gradb__V1__ToTrainer agent_to;

enum agent_link { LINK_DOWN, LINK_CONNECTING, LINK_HELLO, LINK_UP };

enum agent_node_flag {
    NODE_BREAK = 1 << 0,
    NODE_KEEP = 1 << 1,       /* KeepPrevious named it */
    NODE_KEEP_WATCH = 1 << 2, /* a watch plan compares with the step before */
    NODE_CAPTURE = 1 << 3,
    NODE_OUTPUT_NEW = 1 << 4,    /* a slot's dtype or shape changed since it was sent */
    NODE_CAPTURE_WATCH = 1 << 5, /* a watch plan looks at it when the step ends */
    NODE_WATCH_EXACT = 1 << 6,   /* a watch plan looks at it when it has run */
    NODE_WATCH_SEEN = 1 << 7,    /* a watch plan asks in which step it ran */
    NODE_LASTS = 1 << 8,         /* gradb_lasts */
    NODE_LEFT_OUT = 1 << 9,      /* Capture wanted it, and there was no room for the copy */
    NODE_INPUTS_NEW = 1 << 10,   /* gradb_set_inputs since they were sent */
};

enum agent_mark {                 /* of a node that somebody wants to hear of when it has run */
                  MARK_SLOW = 1,  /* the quick way is not for it */
                  MARK_RUN = 2,   /* gradb_wants: it is to be told that it ran */
                  MARK_VALUE = 4, /* and what came out */
                  MARK_NOT_FINITE = 8, /* it is new: at once when its value is not finite */
};

/* A value that we hold a C-order copy of. */
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
    uint8_t geometry_rank; /* that `geometry` has room for */
    uint8_t dtype;
    uint8_t rank;
    bool bound;
    bool checked;                /* an address was told with this type and shape */
    int64_t empty_step;          /* in which the node ran and made no such tensor */
    struct agent_copy *previous; /* NULL until kept */
    struct agent_copy *captured; /* NULL until captured */
};

struct agent_watch_item; /* agent_watch.h */
struct agent_watch_plan;

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
    int64_t first_step; /* it cannot have run before this one */
    uint64_t told;      /* the moment at which exact plans last looked at it; 0 never */
};

/* What is touched whenever a node runs, apart from the rest: a graph may have many nodes, and few
 * that anybody looks at. */
struct agent_pass {
    _Atomic int64_t ran_step; /* the last step in which it was seen to run; 0 never seen */
    uint8_t phase;            /* of the node */
    atomic_uchar marked;      /* enum agent_mark; read without the lock */
};

struct agent_late_input { /* from gradb_add_inputs */
    gradb_node node;
    gradb_input input;
};

struct agent_packet { /* a packed FromTrainer on its way to the I/O thread */
    struct agent_packet *next;
    int64_t step; /* that it reports of */
    size_t len;
    unsigned char data[];
};

struct agent_scalar {
    char name[64];
    double value;
    int64_t step;
};

struct agent_times { /* of a step, without those of its nodes */
    gradb_times times;
    int64_t step;
};

struct agent_run { /* what the debugger let us do */
    enum { RUN_FREE, RUN_STEP, RUN_NEXT, RUN_TO, RUN_FINISH } kind;
    int64_t left;    /* NEXT */
    uint64_t due;    /* STEP: agent.begun at the last of them */
    gradb_node node; /* TO */
    uint32_t phase;  /* FINISH: the phase to leave; 0 takes the next one */
};

struct agent_capturing { /* Capture, and how far it is */
    bool all;
    size_t count;
    int64_t first, last; /* the steps that it is about; last 0: all */
    uint64_t most;       /* bytes that the debugger allows; 0 any number */
    bool active;         /* this step is one of those */
    bool held;           /* copies were made, or left out */
    uint64_t bytes, limit;
};

struct agent_stop { /* why the training thread stands */
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

    /* Read by the hooks without the lock. */
    atomic_int quick;       /* of all nodes only those marked are of interest */
    atomic_int attention;   /* something at a step boundary or a phase change is asked of us */
    _Atomic uint64_t due;   /* besides: at the end of the step with that `begun`; UINT64_MAX none */
    atomic_int connected;   /* the link is up */
    _Atomic int64_t step;   /* last step begun */
    _Atomic uint64_t begun; /* how many were: a program may count some steps twice */
    atomic_int in_step;
    _Atomic int64_t ended; /* the last step that ended */
    atomic_uint phase;
    atomic_int wants_stop;
    atomic_int wants_checkpoint;

    pthread_mutex_t lock;
    /* stopped, verdict_for, sync_seen, the ask, the turn or the link changed: who waits looks */
    pthread_cond_t go;
    bool has_lock;
    pthread_t thread;
    int wake[2];      /* a pipe: a byte wakes the I/O thread */
    bool thread_done; /* the I/O thread is past its last use of the agent */
    bool orphan;      /* nobody will join: the I/O thread frees the agent */

    /* the turn: agent_turn.c */
    bool taken;
    pthread_t holder;
    unsigned turn_waiters;

    /* the program's answers: agent_source.h. Slots are NULL where there is none. */
    gradb_source source;
    bool calling;          /* the holder of the turn is inside the source */
    bool located;          /* since the last release */
    bool keep_new;         /* the source was not told of asked_keep yet */
    struct agent_ask *ask; /* NULL without a source */

    /* what we were opened with */
    char *framework, *framework_version, *device, *program, *graph_name, *address, *token;
    char *job;
    int rank, world_size, local_rank;
    int threads; /* that compute statistics of a big value */
    bool address_given;
    bool started_by_gradb; /* by the debugger at that address: its user knows who stops it */
    bool refused_told;     /* that we do not obey who listens there */
    char stopped_by[320];  /* the debugger, to be told of at the first stop; "" nothing to tell */

    /* called where `armed` leaves 0; NULL: nobody asked to be */
    void (*on_armed)(void *);
    void *on_armed_ctx;

    /* the graph; strings live in the arena */
    struct gd_arena arena;
    struct agent_node *nodes;          /* nodes[0] is not used */
    struct agent_pass *_Atomic passes; /* by id, too; the hooks read it without the lock */
    struct agent_pass *old_passes[32]; /* tables that were outgrown: a hook may be reading one */
    unsigned old_pass_count;
    _Atomic uint32_t node_count; /* with nodes[0]: the next id */
    uint32_t node_capacity;
    uint32_t published; /* ids below this may be sent */
    struct agent_late_input *late;
    size_t late_count, late_capacity, late_published;
    bool outputs_new;             /* some node has NODE_OUTPUT_NEW */
    bool inputs_new;              /* some node has NODE_INPUTS_NEW */
    _Atomic gradb_node last_node; /* that ran in this step; 0 none known */

    /* control */
    enum agent_link link;
    unsigned attempts; /* connection attempts that failed since the start */
    struct agent_run run;
    bool interrupt;
    uint64_t interrupt_heard; /* when; 0: it was said already what the run is busy with */
    int64_t interrupt_at; /* stop at the end of this step or of the first one after it; 0 none */
    bool stop_pending;    /* stop at the next step boundary: a debugger came */
    bool hold;            /* Welcome.on_loss */
    bool hold_pending;    /* stop at the next step boundary: the debugger vanished */
    uint32_t break_count;
    struct agent_capturing capturing;
    char **expected; /* what the names of nodes contain that are waited for */
    size_t expected_count;
    bool expected_not_finite; /* so are values that are not finite, of any new node */
    bool expected_new;        /* one of them was added since gradb_sync */
    gradb_node *keep; /* ids that have NODE_KEEP or NODE_KEEP_WATCH and whose values we copy */
    size_t keep_count;
    gradb_node *asked_keep; /* those that the source keeps */
    size_t asked_keep_count;
    bool keep_stale;  /* a slot was bound or unbound since */
    uint64_t keep_ns; /* that keeping them took the last time */
    struct agent_watch_plan *plans;
    uint64_t plan_serial, moments;         /* how many there were */
    uint64_t plan_changes;                 /* of the set of plans */
    struct agent_watch_item *scalar_items; /* of named numbers */
    /* items that are looked at when their node has run, at the end of the step, and those at the
     * end of the step for which it matters whether the node ran */
    size_t exact_items, end_items, seen_items;
    struct agent_group *group; /* of agent_watch.c; NULL before it is needed */
    bool hears_all;            /* of every node that runs, whatever is marked */
    bool sees_nodes;           /* every node that runs is seen */
    int64_t seen_from;         /* since the begin of that step */
    /* The plans are walked along, maybe with calls into the source in between: messages that change
     * what is asked of nodes wait in `later`. */
    bool passing;
    struct agent_later *later, **later_end;
    bool clear_later; /* before those: forget what a lost debugger asked for */
    /* gradb_sync: numbers of commits that the training thread waits for, and that were seen */
    bool can_sync;
    uint64_t sync_wanted, sync_seen;
    uint32_t synced_nodes;
    size_t synced_late;
    bool stopped;
    bool stop_sent; /* the debugger knows of `stop` */
    struct agent_stop stop;
    uint64_t report_id;
    /* Reports of the moment that hold are answered in their order, some while the source is still
     * asked for what the next ones tell. The first of them, the last that was answered, the one
     * that the training thread waits for, and the one whose verdict was to stop; 0 none */
    uint64_t verdict_first, verdict_seen, verdict_for, verdict_stop;
    char verdict_text[160];
    bool closing;
    char close_text[256];

    /* on their way out */
    struct agent_scalar *scalars;
    size_t scalar_count;
    struct agent_times *times;
    size_t times_count;
    char **log;
    size_t log_count;
    uint64_t log_dropped;
    struct agent_packet *reports, **reports_end;
    size_t reports_bytes;

    char error[256];
    char error_out[256];

    atomic_int socket;   /* the I/O thread's, -1 when there is none; a forked child closes it */
    struct agent_io *io; /* the I/O thread's own */
};

/* Relaxed: who looks only has to see the other thread's word soon, and takes the lock before it
 * acts. */
#define PEEK(word)    atomic_load_explicit(&(word), memory_order_relaxed)
#define POKE(word, v) atomic_store_explicit(&(word), (v), memory_order_relaxed)

/* ---- agent.c: the training thread's side --------------------------------------------------- */

static inline struct agent *agent_of(gradb *g)
{
    return (struct agent *)(void *)g;
}

/* A handle that may be used here: not NULL and not in a forked child. */
bool agent_usable(const struct agent *a);
/* With the lock: works out `armed`, `attention` and `due` from what is asked. */
void agent_arm(struct agent *a);
/* With the lock: works out `marked` of a node, of the nodes from `first` on. */
void agent_mark_node(struct agent *a, uint32_t id);
void agent_mark_nodes(struct agent *a, uint32_t first);
uint64_t agent_now_ns(void); /* monotonic */
/* With the lock: forgets all that a debugger asked for; what belongs to nodes after the pass that
 * is under way. */
void agent_disarm(struct agent *a);
/* With the lock: one line for gradb_error(). */
void agent_set_error(struct agent *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void agent_wake(const struct agent *a); /* the I/O thread */
/* With the lock, on the training thread: stands until the debugger lets go or is lost. */
void agent_stand(struct agent *a, Gradb__V1__StopReason reason, gradb_node node, bool at_step_end,
                 const char *text, uint64_t report);

/* ---- agent_open.c --------------------------------------------------------------------------- */

void agent_free(struct agent *a);

/* One line to the program's stderr; left out where it would have to wait. */
void agent_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The user asked for a debugger that we do not obey: said once. */
void agent_refused(struct agent *a, const char *why);

/* ---- agent_turn.c ---------------------------------------------------------------------------- */

/* Takes the turn and the lock, waiting for both. False: the caller has the turn already, that is,
 * it calls from inside the source; nothing is taken. */
bool agent_turn_take(struct agent *a);
void agent_turn_end(struct agent *a);
/* The lock alone, when nobody else has the turn: for what changes the node table. */
void agent_table_lock(struct agent *a);

/* ---- agent_control.c ------------------------------------------------------------------------- */

/* With the lock: a message that changes what the hooks look at, now or when the pass is over. True:
 * it was taken over. */
bool agent_control(struct agent *a, agent_to *message);
void agent_pass_begin(struct agent *a);
void agent_pass_end(struct agent *a); /* does what had to wait */
/* With the lock: forgets what the debugger wants of nodes, now or when the pass is over. */
void agent_control_clear(struct agent *a);
/* Whether the debugger waits for a node of that name. With the lock. */
bool agent_is_expected(const struct agent *a, const char *name);

/* ---- agent_graph.c -------------------------------------------------------------------------- */

struct agent_graph_cursor { /* how far the I/O thread has sent the graph on this connection */
    uint32_t next_node;
    size_t next_late;
    bool uncommitted; /* something was sent since the last commit */
    uint64_t sync;    /* the last number that went with a commit */
};
/* With the lock: packs the next piece. *ret is malloc'd, NULL when there is nothing to send.
 * GD_ENOMEM. */
int agent_graph_chunk(struct agent *a, struct agent_graph_cursor *cursor, unsigned char **ret,
                      size_t *len);
void agent_graph_free(struct agent *a);
/* NULL when there is no such node. */
struct agent_node *agent_node_at(const struct agent *a, uint32_t id);
/* Copies a tensor's geometry and address into a slot. False: it is malformed or memory is short. */
bool agent_slot_set(struct agent_slot *slot, const gradb_tensor *tensor);
/* With the lock: gradb_bind. */
void agent_bind(struct agent *a, gradb_node node, unsigned slot, const gradb_tensor *tensor);

/* ---- agent_tensor.c: values ------------------------------------------------------------------ */

struct agent_value {
    struct gd_tensor tensor; /* a view on the trainer's memory; not reference counted */
    int64_t step;
};
/* Where a value lies now. Returns a Gradb__V1__RequestError__Code or -1 when it is there; text
 * (160 bytes) says why not. */
int agent_locate(const struct agent *a, uint32_t node, uint32_t slot,
                 Gradb__V1__Iteration iteration, struct agent_value *ret, char text[160]);
/* Narrows the value to a slice. Return and text as above. */
int agent_cut(struct agent_value *value, size_t count, Gradb__V1__SliceItem *const *items,
              char text[160]);
/* A value as it was told of: type, shape and address; false: it was not. */
bool agent_as_told(const struct agent *a, uint32_t node, uint32_t slot, struct agent_value *ret);
/* Elements [first, first + count) in C order to out. */
void agent_gather(const struct gd_tensor *tensor, int64_t first, int64_t count, void *out);
/* The step whose value a slot most likely holds; -1 unknown. */
int64_t agent_guess_step(const struct agent *a, uint32_t node, bool previous);
/* Copies every slot of a node whose place is known into its `previous` copies. False: out of
 * memory. */
bool agent_keep_node(const struct agent *a, uint32_t node);
/* Copies a value into *slot, which is made when it is NULL. False: out of memory. */
bool agent_copy_take(struct agent_copy **slot, const struct agent_value *value);
void agent_copy_free(struct agent_copy *copy);
/* With the lock: the nodes whose previous value is kept, from the flags of the nodes. */
void agent_keep_collect(struct agent *a);

/* ---- agent_capture.c ------------------------------------------------------------------------- */

/* With the lock: replaces what is copied. The nodes' flags and marks are the caller's. */
void agent_capture_set(struct agent *a, const Gradb__V1__Capture *m);
void agent_capture_clear(struct agent *a);
/* With the lock and the turn: this step begins. What was copied in the one before is freed. */
void agent_capture_step(struct agent *a, int64_t step);
/* Whether this step's value of the node is to be copied when it has run. */
bool agent_captures(const struct agent *a, const struct agent_node *node);
/* With the lock and the turn, when the node has run: copies its values, if somebody wants that. */
void agent_capture_node(struct agent *a, uint32_t node);
/* Whether there was no room for a copy; text (160 bytes) says so. */
bool agent_capture_left_out(const struct agent *a, uint32_t node, char text[160]);

/* With the lock: queues a message that is no report; false: it was dropped. */
bool agent_queue(struct agent *a, const agent_from *from);
/* Times of a step as a message; those of nodes are left alone. */
void agent_fill_timing(Gradb__V1__Timing *m, const struct agent_times *from);
/* Says, once and after a second, what keeps the run from heeding an interrupt. With the lock. */
void agent_tell_late(struct agent *a);

/* ---- agent_plans.c, agent_watch.c ---------------------------------------------------- */

/* With the lock, from the I/O thread: takes over the message. */
void agent_watch_set(struct agent *a, agent_to *message);
void agent_watch_clear(struct agent *a);
/* With the lock, on the training thread. May wait for a verdict. True when it stood: a run that
 * was begun there has not moved yet. */
struct agent_told { /* what gradb_did_with_same says of the outputs */
    const gradb_same *same;
    size_t count;
};
bool agent_watch_node(struct agent *a, gradb_node node, struct agent_told told);
bool agent_watch_step_end(struct agent *a);
/* With the lock, on the training thread: a named number was told. */
void agent_watch_scalar(struct agent *a, const char *name, double value);
/* Keeping the node's value for the next step took that long. Nodes may be told of side by side. */
void agent_watch_kept(struct agent *a, gradb_node node, uint64_t ns);
/* With the lock: what the plans have cost. False: out of memory. */
bool agent_watch_costs(const struct agent *a, Gradb__V1__WatchCosts *ret);
void agent_watch_costs_free(Gradb__V1__WatchCosts *costs);

/* ---- agent_shm.c: the I/O thread's shared memory ------------------------------------- */

struct agent_shm;
struct agent_shm *agent_shm_create(void); /* NULL: none on this system */
/* Unlinks and unmaps everything; what the debugger has mapped stays readable there. */
void agent_shm_destroy(struct agent_shm *shm);
bool agent_shm_probe(struct agent_shm *shm, Gradb__V1__ShmProbe *ret); /* strings live in shm */
void agent_shm_probe_done(struct agent_shm *shm);
/* A free segment of at least `bytes`, or NULL (limit, no space). *place gets its description. */
void *agent_shm_take(struct agent_shm *shm, size_t bytes, Gradb__V1__ShmPlace *place);
void agent_shm_mapped(struct agent_shm *shm, uint32_t segment);
void agent_shm_release(struct agent_shm *shm, uint32_t segment);
/* Numbers of segments that were given up since the last call; at most `max`. */
size_t agent_shm_forgotten(struct agent_shm *shm, uint32_t *ret, size_t max);

/* ---- agent_fork.c
 * --------------------------------------------------------------------------------- */

/* From now on a forked child finds the agent disarmed and its descriptors closed. */
void agent_fork_register(struct agent *a);
/* Whether this is the process that opened it. */
bool agent_fork_is_ours(const struct agent *a);
void agent_fork_unregister(struct agent *a);

/* ---- agent_io.c, agent_wire.c: the I/O thread ---------------------------------------- */

void *agent_io_main(void *agent);
int agent_io_create(struct agent *a); /* GD_ENOMEM */
void agent_io_destroy(struct agent *a);

#endif
