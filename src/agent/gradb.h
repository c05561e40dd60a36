/* SPDX-License-Identifier: MIT */
/*
 * libgradb: lets the gradb debugger stop a training process, look at its graph and its tensors, and
 * step it.
 *
 * Use: gradb_open() once, describe the graph (gradb_add_node, gradb_bind, gradb_publish), then call
 * gradb_step_begin / gradb_did / gradb_step_end as training goes. With no debugger listening every
 * one of these calls is a test of one word in memory, and a debugger may attach, vanish and come
 * back at any time. libgradb never exits, prints, raises a signal or installs a handler; on a fault
 * of its own it disarms itself and says why in gradb_error().
 *
 * Threads: the functions are for the thread that trains. That need not be the same one all the
 * time: where an engine runs hooks on threads of its own while the thread that started it waits,
 * those may call. When several come at once they go one after the other, and while one of them
 * stands the others wait. gradb_scalar, gradb_log, gradb_event, gradb_timing, gradb_error,
 * gradb_wants and gradb_is_connected wait for nobody. Only gradb_close must be the last call. The
 * network runs in a thread of libgradb's own. Hold no lock that the source (struct gradb_source)
 * needs when you call a function in which the training may stand.
 *
 * Every function accepts a NULL handle and does nothing.
 *
 * Environment: GRADB_ADDRESS (unix:PATH or HOST:PORT; default: the socket of the user's own where
 * `gradb listen` waits), GRADB_TOKEN (shared with the debugger), GRADB_DISABLE (set and not "0":
 * gradb_open returns NULL), GRADB_THREADS (that compute the statistics of a big tensor while the
 * training thread stands; default: the processors, at most 4), RANK and WORLD_SIZE (which rank of a
 * job it is, where the options do not say).
 */
#ifndef GRADB_H
#define GRADB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GRADB_API         __attribute__((visibility("default")))
#define GRADB_IS_ARMED(g) __atomic_load_n(&(g)->armed, __ATOMIC_RELAXED)
#else
#define GRADB_API
#define GRADB_IS_ARMED(g) ((g)->armed)
#endif

/*
 * Of this interface. Functions, members at the end of a struct that is filled by name, and numbers
 * of an enum are only ever added; with each of them the minor number grows:
 *   1.0  the graph, bound values, steps, gradb_did, stops, scalars, logs, requests
 *   1.1  struct gradb_source and what an eager framework needs with it: gradb_did_with, gradb_sync,
 *        gradb_wants, gradb_lasts, gradb_event, gradb_timing
 *   1.2  gradb_source.locate_part, gradb_stop_at, gradb_heed, gradb_raised,
 *        GRADB_WANT_IF_NOT_FINITE
 *   1.3  gradb_did_with_same
 *   1.4  gradb_on_armed
 *   1.5  gradb_try_enter
 *   1.6  gradb_try_step
 *   1.7  gradb_set_inputs
 */
#define GRADB_VERSION_MAJOR 1
#define GRADB_VERSION_MINOR 7
#define GRADB_MAX_RANK      32

/* The public words. `armed`: not 0 while the debugger wants to hear of nodes. `changes`: another
 * number whenever gradb_wants may answer otherwise than before, so that answers can be kept. They
 * may change at any time: read them as GRADB_IS_ARMED does. */
typedef struct gradb {
    volatile int armed;
    volatile unsigned changes;
} gradb;

typedef uint32_t gradb_node; /* 1, 2, ...; 0 is no node */

/* The numbers of gradb.v1 */
typedef enum gradb_dtype {
    GRADB_BOOL = 1,
    GRADB_INT8 = 2,
    GRADB_INT16 = 3,
    GRADB_INT32 = 4,
    GRADB_INT64 = 5,
    GRADB_UINT8 = 6,
    GRADB_UINT16 = 7,
    GRADB_UINT32 = 8,
    GRADB_UINT64 = 9,
    GRADB_FLOAT16 = 10,
    GRADB_FLOAT32 = 11,
    GRADB_FLOAT64 = 12,
    GRADB_BFLOAT16 = 14,
    GRADB_COMPLEX64 = 15,
    GRADB_COMPLEX128 = 16
} gradb_dtype;

typedef enum gradb_kind {
    GRADB_AUTO = 0, /* the debugger classifies by name and type */
    GRADB_OTHER,
    GRADB_WEIGHT,
    GRADB_GRADIENT,
    GRADB_ACTIVATION,
    GRADB_PARAMETER, /* an input or optimizer state */
    GRADB_CONSTANT
} gradb_kind;

typedef enum gradb_phase {
    GRADB_NO_PHASE = 0,
    GRADB_FORWARD = 1,
    GRADB_BACKWARD = 2,
    GRADB_OPTIMIZER = 3
} gradb_phase;

typedef struct gradb_tensor {
    gradb_dtype dtype;
    int rank;               /* 0 ... GRADB_MAX_RANK */
    const int64_t *shape;   /* elements along each axis */
    const int64_t *strides; /* bytes along each axis; NULL: C order without gaps */
    const void *data;
} gradb_tensor;

typedef struct gradb_input {
    gradb_node node;
    unsigned slot;
    bool control; /* orders only, carries no tensor */
} gradb_input;

typedef struct gradb_attr {
    const char *name;
    const char *value;
} gradb_attr;

typedef struct gradb_frame { /* innermost first */
    const char *file;
    int line;
    const char *function;
    bool library; /* of a framework: shown on request only */
} gradb_frame;

typedef struct gradb_node_info { /* everything is copied */
    const char *name;            /* full name, scopes separated by '/' */
    const char *type;            /* operator type: "MatMul", "Parameter" */
    gradb_kind kind;
    gradb_phase phase; /* GRADB_NO_PHASE for parameters and constants */
    const gradb_input *inputs;
    size_t input_count;
    const gradb_tensor *outputs; /* one per slot; data NULL when not bound yet */
    size_t output_count;
    const gradb_attr *attrs;
    size_t attr_count;
    const gradb_frame *frames;
    size_t frame_count;
} gradb_node_info;

typedef struct gradb_options {
    const char *framework; /* "c" when NULL */
    const char *framework_version;
    const char *device;  /* "cpu" when NULL */
    const char *program; /* the process's name when NULL */
    const char *graph;   /* name of the graph; "main" when NULL */
    int rank;
    int world_size;                    /* 0: as RANK and WORLD_SIZE say, else 1 */
    const char *address;               /* GRADB_ADDRESS or the default when NULL */
    const char *token;                 /* GRADB_TOKEN when NULL */
    const struct gradb_source *source; /* copied; NULL: every value is bound or told */
} gradb_options;

/* ---- what an eager framework adds --------------------------------------------------------------
 * There nothing has a place of its own: outputs live as long as somebody refers to them, parameters
 * move, values lie on a device. Instead of telling all places all the time, the program is asked
 * when the debugger wants to look. */

/* The figures of gradb.v1's Stats and Difference, by the names and with the meaning they have
 * there. */
typedef struct gradb_stats {
    uint64_t count, nan, pos_inf, neg_inf, zero, neg_zero, positive, negative, denormal;
    double min, max, mean, abs_mean, sum_sq, std;
    uint64_t in_range[16];
    bool has_previous; /* what follows is known */
    double mean_abs_delta, max_abs_delta, mean_abs_previous, dot, sum_sq_previous, mean_delta,
        sum_sq_delta;
    uint64_t mismatch, unpaired;
    uint64_t *histogram; /* of the caller: one place per bin, to be filled; NULL: none wanted */
} gradb_stats;

typedef struct gradb_stats_wanted {
    int range_count;                   /* 0 ... 16 */
    double range_lo[16], range_hi[16]; /* both ends inside */
    bool against_previous, equal_nan;
    double rtol, atol;
    unsigned bins; /* 0: no histogram */
    double bins_lo, bins_hi;
} gradb_stats_wanted;

typedef enum gradb_answer {
    GRADB_OK = 0,
    GRADB_NO_VALUE,    /* not computed yet, gone, not kept */
    GRADB_UNSUPPORTED, /* sparse, quantised, ... */
    GRADB_FAILED,
    GRADB_GONE /* and it will have none again: what the node stands for does not exist any more */
} gradb_answer;

#define GRADB_WHY 160 /* bytes of a reason, with its NUL */

/* One item of a slice as Python writes it: x[start], x[start:stop:step], x[...], x[None]. */
typedef enum gradb_slice_kind {
    GRADB_SLICE_INDEX = 0,
    GRADB_SLICE_RANGE = 1,
    GRADB_SLICE_ELLIPSIS = 2,
    GRADB_SLICE_NEWAXIS = 3
} gradb_slice_kind;
typedef struct gradb_slice_item {
    gradb_slice_kind kind;
    bool has_start, has_stop;  /* of a range */
    int64_t start, stop, step; /* step is not 0, and may be negative */
} gradb_slice_item;

/*
 * Asked on the thread that is inside a function of libgradb, the one that stands while the training
 * stands; never twice at a time, and with no lock of libgradb held. Any slot may be NULL.
 *
 * A source may call libgradb: to say something (gradb_scalar, gradb_log, gradb_event), to add,
 * publish or bind nodes, to ask (gradb_wants, gradb_error). What the training calls as it goes
 * (gradb_did, gradb_step_end, gradb_enter, gradb_stop, gradb_stop_at, gradb_raised, gradb_heed,
 * gradb_sync, gradb_wait, gradb_close) does nothing there. It must not leave by longjmp or an
 * exception.
 */
typedef struct gradb_source {
    void *ctx;
    /* Where the value of a slot that is not bound lies now, in host memory; *step: whose value it
     * is, -1 unknown. The value stays readable until `release`, shape and strides until the next
     * call. A value on a device is copied by this call. Not asked for a slot whose value of this
     * step was copied when its node had run. */
    gradb_answer (*locate)(void *ctx, gradb_node node, unsigned slot, bool previous,
                           gradb_tensor *ret, int64_t *step, char why[GRADB_WHY]);
    /* Nothing that `locate` has told is read any more. */
    void (*release)(void *ctx);
    /* Statistics computed where the value lies; *ret is zero but for `histogram`, *what gets type
     * and shape. GRADB_UNSUPPORTED: locate it, libgradb computes. */
    gradb_answer (*stats)(void *ctx, gradb_node node, unsigned slot, bool previous,
                          const gradb_stats_wanted *wanted, gradb_stats *ret, gradb_tensor *what,
                          char why[GRADB_WHY]);
    /* The nodes whose value at the end of each step shall be kept for the next one by the source
     * (libgradb keeps those whose slots are bound). Replaces the set. Called at a stop, at a step's
     * begin or end, and in gradb_sync; values are kept after gradb_step_end. */
    void (*keep)(void *ctx, const gradb_node *nodes, size_t count);
    /* A request in words that only the program can carry out: `name` says what ("overflow",
     * "rerun", "timing", ...), `args` how. *reply: text, JSON where the caller wants it; valid
     * until the next call. `node` 0: none. */
    gradb_answer (*command)(void *ctx, const char *name, const char *args, gradb_node node,
                            const char **reply, char why[GRADB_WHY]);
    /* As locate, of a slice of the value: so that a value on a device need not be copied whole.
     * GRADB_UNSUPPORTED: locate it, libgradb cuts. */
    gradb_answer (*locate_part)(void *ctx, gradb_node node, unsigned slot, bool previous,
                                const gradb_slice_item *items, size_t count, gradb_tensor *ret,
                                int64_t *step, char why[GRADB_WHY]);
} gradb_source;

/* NULL when GRADB_DISABLE is set or memory is short: go on without. options may be NULL. */
GRADB_API gradb *gradb_open(const gradb_options *options);
/* The training ended; `why` NULL or "" means normally. Frees the handle. */
GRADB_API void gradb_close(gradb *g, const char *why);
/* A debugger of another user is not obeyed: GRADB_ADDRESS may name its port, and then one line on
 * stderr says so. When a debugger that did not start this process stops it, one line on stderr says
 * which. */
/* Waits at most `seconds` for a debugger to connect; when one does, stands here (with the graph
 * published, before the first step) until it lets the run go on, however long that takes. True when
 * one is connected at the return. Without this call a debugger that is slow to answer attaches at a
 * later step. Returns at once when nobody listens and neither GRADB_ADDRESS nor options->address
 * says that somebody should, and when one side refuses the other: another user, or a token. */
GRADB_API bool gradb_wait(gradb *g, double seconds);
GRADB_API bool gradb_is_connected(const gradb *g);
/* Why libgradb disarmed itself, or the last connection error; "" when nothing is wrong. Valid until
 * the next call. */
GRADB_API const char *gradb_error(gradb *g);

/* `call` is called whenever `armed` leaves 0: for a program that does not read it at every node
 * while it is 0. On any thread, also of libgradb's own, with a lock of libgradb held: it must
 * neither call libgradb nor wait. NULL: no more, and none is under way when this returns. A forked
 * child is told nothing. */
GRADB_API void gradb_on_armed(gradb *g, void (*call)(void *ctx), void *ctx);

/* Adds a node; inputs must have been added before. Nodes are taken to execute in the order in which
 * they are added. 0 on failure: why is in gradb_error(). */
GRADB_API gradb_node gradb_add_node(gradb *g, const gradb_node_info *info);
/* More inputs for a node that is there (edges that go back, such as a parameter's update). */
GRADB_API void gradb_add_inputs(gradb *g, gradb_node node, const gradb_input *inputs, size_t count);
/* All inputs of a node from now on, where its source may give it others in each step. The debugger
 * hears of them at the next stop. */
GRADB_API void gradb_set_inputs(gradb *g, gradb_node node, const gradb_input *inputs, size_t count);
/* Where a slot's value lies. The memory must stay readable until it is bound elsewhere, unbound
 * (tensor NULL) or the handle is closed; it is read only while the training thread is inside a
 * function of libgradb. dtype and shape may differ from those given before. */
GRADB_API void gradb_bind(gradb *g, gradb_node node, unsigned slot, const gradb_tensor *tensor);
/* The node's values outlive the running step, and the source tells at its end where they lie: when
 * the node has run, nothing needs to be copied or told for what is looked at then. */
GRADB_API void gradb_lasts(gradb *g, gradb_node node);
/* Makes the nodes added so far visible to the debugger. May be called again when the graph grew. */
GRADB_API void gradb_publish(gradb *g);

/* The hooks. A step is one optimizer step; numbers count from 1. The training thread waits inside
 * these while the run is stopped. */
GRADB_API void gradb_step_begin(gradb *g, int64_t step);
GRADB_API void gradb_step_end(gradb *g);
GRADB_API void gradb_enter(gradb *g, gradb_phase phase);
/* As gradb_enter where the run cannot stand there now: true. Else false, and nothing is done. For
 * who would have to let go of something before, such as an interpreter's lock. */
GRADB_API bool gradb_try_enter(gradb *g, gradb_phase phase);
/* The same of gradb_step_end and, for the step that follows at once, gradb_step_begin. */
GRADB_API bool gradb_try_step(gradb *g, int64_t step);
GRADB_API void gradb_did_slow(gradb *g, gradb_node node);
/* `node` has just written its outputs. */
static inline void gradb_did(gradb *g, gradb_node node)
{
    if (g && GRADB_IS_ARMED(g)) {
        gradb_did_slow(g, node);
    }
}
/* The same for values that do not outlive the call, one tensor per slot: an eager framework's.
 * They are copied when the debugger wants to look at them later. A tensor with data NULL lies
 * elsewhere: the source is asked for it. One of dtype 0 is none, and so is one that is not given:
 * the slot has no value this time. */
GRADB_API void gradb_did_with_slow(gradb *g, gradb_node node, const gradb_tensor *outputs,
                                   size_t count);
static inline void gradb_did_with(gradb *g, gradb_node node, const gradb_tensor *outputs,
                                  size_t count)
{
    if (g && GRADB_IS_ARMED(g)) {
        gradb_did_with_slow(g, node, outputs, count);
    }
}
/* A slot whose elements an output has. */
typedef struct gradb_same {
    gradb_node node; /* 0: none is known */
    unsigned slot;
} gradb_same;
/* gradb_did_with where some outputs are values that were told of before: a view, a transpose, a
 * gradient that was handed on. `same` has one entry per output, or is NULL: the output has the very
 * elements (type and number; shape and order of the axes may be others) that this slot of that node
 * had when it was last told of, which was in this step. What was computed of them there is not
 * computed again where an exact watch plan asks for the same. Both tensors have data, or both are
 * for the source; of others, of another type or number of elements, and of a node that was not told
 * of in this step, what is said here is not heeded. */
GRADB_API void gradb_did_with_same_slow(gradb *g, gradb_node node, const gradb_tensor *outputs,
                                        size_t count, const gradb_same *same);
static inline void gradb_did_with_same(gradb *g, gradb_node node, const gradb_tensor *outputs,
                                       size_t count, const gradb_same *same)
{
    if (g && GRADB_IS_ARMED(g)) {
        gradb_did_with_same_slow(g, node, outputs, count, same);
    }
}
/* Stops here and shows `why`, up to 1023 bytes of it, when a debugger is connected. */
GRADB_API void gradb_stop(gradb *g, const char *why);
/* The same at a node that is known by now: what failed there is `why`. */
GRADB_API void gradb_stop_at(gradb *g, gradb_node node, const char *why);
/* The same for an exception that was raised there, 0: at no node that is known. */
GRADB_API void gradb_raised(gradb *g, gradb_node node, const char *why);

/* Stands here when the debugger has asked the run to stop: for places, in a computation that takes
 * long, where no node is told of. */
GRADB_API void gradb_heed(gradb *g);

/* What the debugger wants of this node when it runs; 0: nothing, gradb_did may be left out by a
 * program that has a source. */
enum {
    GRADB_WANT_RUN = 1,
    GRADB_WANT_VALUE = 2,
    /* The node is new to the debugger, which waits for values that are not finite: if this one has
     * such, call gradb_sync before gradb_did_with, and ask again. */
    GRADB_WANT_IF_NOT_FINITE = 4
};
GRADB_API unsigned gradb_wants(const gradb *g, gradb_node node);
/* Publishes, and waits until the debugger has taken in all that was published and what it now wants
 * of it is known here: after this a new node's first run is watched. False: no debugger is there.
 */
GRADB_API bool gradb_sync(gradb *g);
/* Something worth knowing: kind "skipped-step", "loss-scale", "graph-changed", "warning";
 * "busy" and "unseen" (something that cannot be looked at) are shown to the user at once. */
GRADB_API void gradb_event(gradb *g, const char *kind, const char *text, gradb_node node);

/* Where the time of the step that ends went, in seconds; negative: not known. */
typedef struct gradb_op_time {
    gradb_node node;
    uint32_t calls;
    double seconds;
} gradb_op_time;
typedef struct gradb_times {
    double total, data, forward, backward, optimizer, gap;
    const gradb_op_time *ops; /* the slowest, where they were measured */
    size_t op_count;
} gradb_times;
GRADB_API void gradb_timing(gradb *g, const gradb_times *times);

/* Named values of the step: "loss", "lr", "epoch", "batch". */
GRADB_API void gradb_scalar(gradb *g, const char *name, double value);
GRADB_API void gradb_log(gradb *g, const char *line);

/* Requests of the debugger that only the trainer can carry out: look after each step. */
GRADB_API bool gradb_wants_stop(gradb *g);       /* end the training in good order */
GRADB_API bool gradb_wants_checkpoint(gradb *g); /* true once per request */

#ifdef __cplusplus
}
#endif
#endif
