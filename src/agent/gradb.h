/* SPDX-License-Identifier: MIT */
/*
 * libgradb lets the gradb debugger stop a training process, look at its graph and tensors, and step
 * it.
 *
 * Use: call gradb_open() once, describe the graph (gradb_add_node, gradb_bind, gradb_publish), then
 * call gradb_step_begin, gradb_did and gradb_step_end as the training proceeds. While no debugger
 * is connected, each of these calls tests one word in memory. A debugger may attach, vanish and
 * come back at any time. libgradb never exits, prints, raises a signal or installs a handler; on an
 * internal error it disarms itself, and gradb_error() says why.
 *
 * Threads: call these functions on the thread that trains. It need not always be the same thread:
 * an engine that runs hooks on its own threads while the starting thread waits may call from those.
 * Calls that arrive together are executed one after another; while one of them is stopped, the
 * others wait. gradb_scalar, gradb_log, gradb_event, gradb_timing, gradb_error, gradb_wants and
 * gradb_is_connected never wait. gradb_close must be the last call. The network runs on a thread of
 * libgradb. When you call a function in which the training may stop, hold no lock that the source
 * (struct gradb_source) needs.
 *
 * Every function accepts a NULL handle and then does nothing.
 *
 * Environment: GRADB_ADDRESS (unix:PATH or HOST:PORT; default: the user's own socket, on which
 * `gradb listen` waits), GRADB_TOKEN (shared with the debugger), GRADB_DISABLE (set and not "0":
 * gradb_open returns NULL), GRADB_THREADS (number of threads that compute the statistics of a large
 * tensor while the training is stopped; default: number of processors, at most 4), RANK and
 * WORLD_SIZE (used where the options leave them open).
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
 * Version of this interface. Functions, struct members (at the end, filled by name) and enum values
 * are only ever added; each addition increases the minor number:
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
 *   1.8  GRADB_COMPILED, gradb_set_attr
 *   1.9  gradb_momentary, gradb_wants_at_end, gradb_wants_new
 *   1.10 gradb_timing_facts, gradb_metric, gradb_metric_batch, gradb_metric_evaluated,
 *        gradb_happened, gradb_wants_event, gradb_timing_compiled, gradb_as_of
 *   1.11 gradb_source.lines, gradb_line_found, gradb_line_reached, gradb_given_up
 *   1.12 gradb_on_look, gradb_wants_numbers
 *   1.13 gradb_use_openmp
 */
#define GRADB_VERSION_MAJOR 1
#define GRADB_VERSION_MINOR 13
#define GRADB_MAX_RANK      32

/* The public words. `armed` is not 0 while the debugger wants reports about nodes. `changes` gets a
 * new value whenever gradb_wants or gradb_wants_at_end may answer differently, so that answers can
 * be cached. Both may change at any time: read them as GRADB_IS_ARMED does. */
typedef struct gradb {
    volatile int armed;
    volatile unsigned changes;
} gradb;

typedef uint32_t gradb_node; /* 1, 2, ...; 0: no node */

/* Values as in gradb.v1 */
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
    GRADB_CONSTANT,
    /* an operator inside compiled code, for the user to see: it has no values and is never
     * reported. Give it no outputs; its name should begin with "compiled/". */
    GRADB_COMPILED
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
    bool control; /* execution order only; carries no tensor */
} gradb_input;

typedef struct gradb_attr {
    const char *name;
    const char *value;
} gradb_attr;

typedef struct gradb_frame { /* innermost first */
    const char *file;
    int line;
    const char *function;
    bool library; /* inside a framework: hidden by default */
} gradb_frame;

typedef struct gradb_node_info { /* everything is copied */
    const char *name;            /* full name, scopes separated by '/' */
    const char *type;            /* operator type: "MatMul", "Parameter" */
    gradb_kind kind;
    gradb_phase phase; /* GRADB_NO_PHASE for parameters and constants */
    const gradb_input *inputs;
    size_t input_count;
    const gradb_tensor *outputs; /* one per slot; data NULL: not bound yet */
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
    int world_size;                    /* 0: from RANK and WORLD_SIZE, otherwise 1 */
    const char *address;               /* GRADB_ADDRESS or the default when NULL */
    const char *token;                 /* GRADB_TOKEN when NULL */
    const struct gradb_source *source; /* copied; NULL: every value is bound or passed in */
} gradb_options;

/* ---- for eager frameworks ----------------------------------------------------------------------
 * In an eager framework values have no fixed place: outputs live as long as they are referenced,
 * parameters move, values are on a device. Instead of reporting every place all the time, the
 * program is asked when the debugger wants to look. */

/* The statistics of gradb.v1's Stats and Difference, with the same names and meaning. */
typedef struct gradb_stats {
    uint64_t count, nan, pos_inf, neg_inf, zero, neg_zero, positive, negative, denormal;
    double min, max, mean, abs_mean, sum_sq, std;
    uint64_t in_range[16];
    bool has_previous; /* the following members are known */
    double mean_abs_delta, max_abs_delta, mean_abs_previous, dot, sum_sq_previous, mean_delta,
        sum_sq_delta;
    uint64_t mismatch, unpaired;
    /* owned by the caller: one entry per bin, to be filled; NULL: not wanted */
    uint64_t *histogram;
} gradb_stats;

typedef struct gradb_stats_wanted {
    int range_count;                   /* 0 ... 16 */
    double range_lo[16], range_hi[16]; /* both ends included */
    bool against_previous, equal_nan;
    double rtol, atol;
    unsigned bins; /* 0: no histogram */
    double bins_lo, bins_hi;
} gradb_stats_wanted;

typedef enum gradb_answer {
    GRADB_OK = 0,
    GRADB_NO_VALUE,    /* not computed yet, freed, or not kept */
    GRADB_UNSUPPORTED, /* sparse, quantised, ... */
    GRADB_FAILED,
    GRADB_GONE /* gone for good: what the node stands for no longer exists */
} gradb_answer;

#define GRADB_WHY 160 /* bytes of a reason, including its NUL */

/* One item of a slice as written in Python: x[start], x[start:stop:step], x[...], x[None]. */
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

typedef struct gradb_line { /* a line at which the program is to stop */
    unsigned id;
    const char *file;     /* a path, or the end of one; "": any file that has the function */
    int line;             /* 0: the first line of `function` */
    const char *function; /* "forward", "Net.forward", "model.Net.forward"; "" with a line */
} gradb_line;

/*
 * Functions of the program that libgradb calls, on the thread that is inside a function of libgradb
 * (the stopped one while the training is stopped); never two at a time, and with no lock of
 * libgradb held. Any of them may be NULL.
 *
 * A source may call libgradb to log (gradb_scalar, gradb_log, gradb_event), to add, publish or bind
 * nodes, to ask (gradb_wants, gradb_error) and to call gradb_on_look. The functions that mark the
 * progress of the training (gradb_did, gradb_step_end, gradb_enter, gradb_stop, gradb_stop_at,
 * gradb_raised, gradb_heed, gradb_sync, gradb_wait, gradb_close) do nothing there. A source must
 * not leave by longjmp or an exception.
 */
typedef struct gradb_source {
    void *ctx;
    /* Where the value of an unbound slot is now, in host memory; *step: the step of the value, -1:
     * unknown. The value must stay readable until `release`, shape and strides until the next call.
     * A value on a device is copied by this call. Not called for a slot whose value of this step
     * was copied when its node ran. */
    gradb_answer (*locate)(void *ctx, gradb_node node, unsigned slot, bool previous,
                           gradb_tensor *ret, int64_t *step, char why[GRADB_WHY]);
    /* Values returned by `locate` are not read any more. */
    void (*release)(void *ctx);
    /* Statistics computed where the value is; *ret is zero except for `histogram`; set type and
     * shape in *what. GRADB_UNSUPPORTED: libgradb locates the value and computes them. */
    gradb_answer (*stats)(void *ctx, gradb_node node, unsigned slot, bool previous,
                          const gradb_stats_wanted *wanted, gradb_stats *ret, gradb_tensor *what,
                          char why[GRADB_WHY]);
    /* The nodes whose values the source must keep at the end of each step for the next one
     * (libgradb keeps those with bound slots). Replaces the previous set. Called at a stop, at the
     * beginning or end of a step, and in gradb_sync; values are kept after gradb_step_end. */
    void (*keep)(void *ctx, const gradb_node *nodes, size_t count);
    /* A request that only the program can carry out: `name` is the command ("overflow", "rerun",
     * "timing", ...), `args` its arguments. *reply: text, or JSON where the caller wants it; valid
     * until the next call. `node` 0: none. GRADB_UNSUPPORTED: there is no command of that name.
     *
     * Commands that any program may offer, for the debugger's own commands:
     *   "commands"          {"commands":[{"name":..., "usage":..., "summary":...}]}, for `agent`
     *   "set-lr"            for `set lr`: {"optimizer":"AdamW","groups":[{"group":0,"lr":0.001}]},
     *                       the rates of the next step; args "0=0.0005" (GROUP=RATE, separated by
     *                       blanks) sets them first. args may begin with an optimizer's name.
     *   "timing"            for `set timing`: args "on" or "off", whether gradb_timing is to have
     *                       operators, from the next step on: {"operators":true}
     * examples/charlm/trace.c offers all. */
    gradb_answer (*command)(void *ctx, const char *name, const char *args, gradb_node node,
                            const char **reply, char why[GRADB_WHY]);
    /* As locate, for a slice, so that a value on a device need not be copied as a whole.
     * GRADB_UNSUPPORTED: libgradb locates the whole value and slices it. */
    gradb_answer (*locate_part)(void *ctx, gradb_node node, unsigned slot, bool previous,
                                const gradb_slice_item *items, size_t count, gradb_tensor *ret,
                                int64_t *step, char why[GRADB_WHY]);
    /* Lines at which the program is to stop, with gradb_line_reached, before it executes them.
     * Replaces the previous set; count 0: none any more. Called as `keep`. Answer each line with
     * gradb_line_found. NULL: the program cannot stop at lines. */
    void (*lines)(void *ctx, const gradb_line *lines, size_t count);
} gradb_source;

/* NULL if GRADB_DISABLE is set or memory is exhausted: continue without it. options may be NULL. */
GRADB_API gradb *gradb_open(const gradb_options *options);
/* The training has ended; `why` NULL or "": normally. Frees the handle. */
GRADB_API void gradb_close(gradb *g, const char *why);
/* The debugger of another user is not obeyed; if GRADB_ADDRESS names its port, one line on stderr
 * says so. When a debugger that did not start this process stops it, one line on stderr names the
 * debugger. */
/* Waits at most `seconds` for a debugger to connect. If one does, stops here (with the graph
 * published, before the first step) until it lets the run continue, however long that takes.
 * Returns true if a debugger is connected. Without this call, a debugger that answers slowly
 * attaches at a later step. Returns immediately if nobody listens and neither GRADB_ADDRESS nor
 * options->address names a debugger, or if one side refuses the other: another user, or a wrong
 * token. */
GRADB_API bool gradb_wait(gradb *g, double seconds);
GRADB_API bool gradb_is_connected(const gradb *g);
/* Why libgradb disarmed itself, or the last connection error; "": no error. Valid until the next
 * call. */
GRADB_API const char *gradb_error(gradb *g);

/* Calls `call` whenever `armed` becomes nonzero, for programs that do not read it at every node. It
 * runs on any thread, including libgradb's own, with a lock of libgradb held: it must neither call
 * libgradb nor wait. NULL: stop calling; no call is in progress when this returns. Not called in
 * forked children. */
GRADB_API void gradb_on_armed(gradb *g, void (*call)(void *ctx), void *ctx);

typedef struct gradb_ask {
    gradb_node node;
    unsigned slot;
    const gradb_stats_wanted *wanted;
} gradb_ask;

/* Calls `call`, on the terms of struct gradb_source, before libgradb looks at values at the end of
 * a step, and before the training stops (count 0). `asks` are values whose statistics it is about
 * to ask the source for: a source can fetch them from a device all at once, and hold them until
 * `release`. There may be several calls, with a part of them each. Numbers that the program has put
 * off (see gradb_wants_numbers) must be reported before the call returns. NULL: stop calling. */
GRADB_API void gradb_on_look(gradb *g, void (*call)(void *ctx, const gradb_ask *asks, size_t count),
                             void *ctx);

/* Functions of the OpenMP library that the program computes with: GOMP_parallel (of libgomp; those
 * of LLVM and Intel have it, too), omp_get_max_threads and omp_in_parallel. */
typedef struct gradb_openmp {
    void (*parallel)(void (*work)(void *ctx), void *ctx, unsigned threads, unsigned flags);
    int (*max_threads)(void);
    int (*in_parallel)(void);
} gradb_openmp;

/* The threads of OpenMP share the work on values from 256 KiB on; without it, threads of libgradb's
 * own that on values from 4 MiB on. Call it before the first step, in a program whose training
 * thread itself runs parallel regions: libgradb runs such regions on the threads that call it. The
 * struct is copied, and is for the whole process; one with a NULL is ignored. */
GRADB_API void gradb_use_openmp(gradb *g, const gradb_openmp *openmp);

/* Adds a node; its inputs must have been added before. Nodes are assumed to run in the order in
 * which they are added. 0 on failure; gradb_error() says why. */
GRADB_API gradb_node gradb_add_node(gradb *g, const gradb_node_info *info);
/* Adds inputs to an existing node (edges that go back, such as a parameter's update). */
GRADB_API void gradb_add_inputs(gradb *g, gradb_node node, const gradb_input *inputs, size_t count);
/* Replaces all inputs of a node, if its inputs may differ from step to step. The debugger learns of
 * them at the next stop. */
GRADB_API void gradb_set_inputs(gradb *g, gradb_node node, const gradb_input *inputs, size_t count);
/* Gives an attribute another value, or adds it. The debugger learns of it at the next stop. */
GRADB_API void gradb_set_attr(gradb *g, gradb_node node, const char *name, const char *value);
/* The memory of a slot's value. It must stay readable until the slot is bound elsewhere, unbound
 * (tensor NULL) or the handle is closed; it is read only while the training thread is inside a
 * function of libgradb. dtype and shape may differ from earlier ones. */
GRADB_API void gradb_bind(gradb *g, gradb_node node, unsigned slot, const gradb_tensor *tensor);
/* The node's values outlive the current step, and the source can locate them at its end. So nothing
 * needs to be copied or passed in when the node has run. */
GRADB_API void gradb_lasts(gradb *g, gradb_node node);
/* The node has no phase, but its value may change in any of them, like the statistics of a
 * normalization: what is read of it inside a step is of that step. The values of other nodes
 * without a phase, parameters and the state of optimizers, are of the previous step until the
 * optimizer runs. */
GRADB_API void gradb_momentary(gradb *g, gradb_node node);
/* Makes the nodes added so far visible to the debugger. Call it again after the graph has grown. */
GRADB_API void gradb_publish(gradb *g);

/* The hooks. A step is one optimizer step; steps count from 1. While the run is stopped, the
 * training thread waits inside one of these. */
GRADB_API void gradb_step_begin(gradb *g, int64_t step);
GRADB_API void gradb_step_end(gradb *g);
GRADB_API void gradb_enter(gradb *g, gradb_phase phase);
/* Does what gradb_enter does and returns true, provided the run cannot stop there now; otherwise
 * does nothing and returns false. For callers that must first release something, such as an
 * interpreter's lock. */
GRADB_API bool gradb_try_enter(gradb *g, gradb_phase phase);
/* The same for gradb_step_end followed by gradb_step_begin of the next step. */
GRADB_API bool gradb_try_step(gradb *g, int64_t step);
GRADB_API void gradb_did_slow(gradb *g, gradb_node node);
/* `node` has just written its outputs. */
static inline void gradb_did(gradb *g, gradb_node node)
{
    if (g && GRADB_IS_ARMED(g)) {
        gradb_did_slow(g, node);
    }
}
/* The same for values that do not outlive the call (eager frameworks), one tensor per slot. They
 * are copied if the debugger wants to look at them later. data NULL: the value is elsewhere, and
 * the source is asked for it. dtype 0, or a missing tensor: the slot has no value this time. */
GRADB_API void gradb_did_with_slow(gradb *g, gradb_node node, const gradb_tensor *outputs,
                                   size_t count);
static inline void gradb_did_with(gradb *g, gradb_node node, const gradb_tensor *outputs,
                                  size_t count)
{
    if (g && GRADB_IS_ARMED(g)) {
        gradb_did_with_slow(g, node, outputs, count);
    }
}
/* The slot whose elements an output shares. */
typedef struct gradb_same {
    gradb_node node; /* 0: unknown */
    unsigned slot;
} gradb_same;
/* gradb_did_with for outputs that may equal earlier values: a view, a transpose, a gradient passed
 * through. `same` is NULL or has one entry per output, which says that the output has exactly the
 * elements (type and number; shape and axis order may differ) that this slot of that node had when
 * it was last reported in this step. An exact watch plan then reuses the statistics computed there.
 * Both tensors must have data, or both must come from the source. Entries with another type or
 * number of elements, or of a node not reported in this step, are ignored. */
GRADB_API void gradb_did_with_same_slow(gradb *g, gradb_node node, const gradb_tensor *outputs,
                                        size_t count, const gradb_same *same);
static inline void gradb_did_with_same(gradb *g, gradb_node node, const gradb_tensor *outputs,
                                       size_t count, const gradb_same *same)
{
    if (g && GRADB_IS_ARMED(g)) {
        gradb_did_with_same_slow(g, node, outputs, count, same);
    }
}
/* If a debugger is connected, stops here and shows `why`, up to 1023 bytes of it. */
GRADB_API void gradb_stop(gradb *g, const char *why);
/* The same at a node that the debugger knows by now; `why` says what failed there. */
GRADB_API void gradb_stop_at(gradb *g, gradb_node node, const char *why);
/* The same for an exception raised at a node; 0: at no known node. */
GRADB_API void gradb_raised(gradb *g, gradb_node node, const char *why);

/* Where a line of gradb_source.lines is: several places if several files or functions match. None:
 * `why` says why it will never be reached; "": its source is not loaded yet, and the program looks
 * again when it loads more. */
GRADB_API void gradb_line_found(gradb *g, unsigned id, const gradb_frame *places, size_t count,
                                const char *why);
/* The program is about to execute a line: stops. ids: of the lines there; frames: the stack,
 * innermost first. */
GRADB_API void gradb_line_reached(gradb *g, const unsigned *ids, size_t id_count,
                                  const gradb_frame *frames, size_t frame_count);

/* Stops here if the debugger has requested it: for places inside a long computation that reports no
 * node. */
GRADB_API void gradb_heed(gradb *g);

/* What the debugger wants of this node when it runs; 0: nothing, and a program with a source may
 * leave out gradb_did. */
enum {
    GRADB_WANT_RUN = 1,
    GRADB_WANT_VALUE = 2,
    /* The node is new, and the debugger waits for non-finite values: if this one is not finite,
     * call gradb_sync before gradb_did_with, and ask again. */
    GRADB_WANT_IF_NOT_FINITE = 4
};
GRADB_API unsigned gradb_wants(const gradb *g, gradb_node node);
/* Whether a watchpoint checks the node at the end of each step, where the program must then have
 * its value. `armed` does not tell. */
GRADB_API bool gradb_wants_at_end(const gradb *g, gradb_node node);
/* Whether watchpoints that check at the end of a step would cover nodes that are not added yet. A
 * program that adds nodes only in some steps should do so in the next one. `armed` does not tell.
 */
GRADB_API bool gradb_wants_new(const gradb *g);
/* Publishes, and waits until the debugger has processed everything published and its requests about
 * it are known here, so that even a new node's first run is watched. False: no debugger is
 * connected. */
GRADB_API bool gradb_sync(gradb *g);
/* An event. kind "skipped-step", "loss-scale", "graph-changed", "warning"; "busy" and "unseen"
 * (something that cannot be inspected) are shown to the user immediately. */
GRADB_API void gradb_event(gradb *g, const char *kind, const char *text, gradb_node node);
/* An event at which the debugger may stop the training: "begin", "epoch-begin", "epoch-end",
 * "eval-begin", "eval-end", "checkpoint" (text: its path), "end". The begin and the end of steps
 * are known from gradb_step_begin and gradb_step_end. epoch, batch: 0 where they are unknown; text
 * may be NULL. Costs a message, or nothing while no debugger is connected. */
GRADB_API void gradb_happened(gradb *g, const char *kind, int64_t epoch, int64_t batch,
                              const char *text);
/* Whether a debugger waits for events of that kind. `changes` gets a new value when the answer may
 * change. */
GRADB_API bool gradb_wants_event(gradb *g, const char *kind);

/* Where the time of the ending step went, in seconds; negative: unknown. Call it before
 * gradb_step_end:
 *
 *     gradb_op_time op = {.node = matmul, .calls = 2, .seconds = 0.004};
 *     gradb_timing(g, &(gradb_times){.total = 0.010, .data = -1, .forward = 0.004,
 *                                    .backward = 0.005, .optimizer = 0.001, .gap = 0,
 *                                    .ops = &op, .op_count = 1}); */
typedef struct gradb_op_time {
    gradb_node node;
    uint32_t calls;
    double seconds;
} gradb_op_time;
typedef struct gradb_times {
    double total, data, forward, backward, optimizer, gap;
    const gradb_op_time *ops; /* if measured; 16,384 of them count */
    size_t op_count;
} gradb_times;
GRADB_API void gradb_timing(gradb *g, const gradb_times *times);
/* Another part of the step: seconds in code that a framework has compiled, whose forward and
 * backward pass cannot be told apart. Before gradb_timing of the same step. */
GRADB_API void gradb_timing_compiled(gradb *g, double seconds);
/* What the program knows about its times, as a JSON object of at most 1 MiB: docs/protocol.md lists
 * the members. After gradb_timing of the same step. */
GRADB_API void gradb_timing_facts(gradb *g, const char *json);

/* Named scalars: "loss", "lr", "epoch", "batch". Inside a step they belong to it, also at its end;
 * after gradb_step_end, and between the events "eval-begin" and "eval-end", to the step that has
 * ended. */
GRADB_API void gradb_scalar(gradb *g, const char *name, double value);
/* Whether the numbers of a step must be reported before it ends, because something is checked with
 * them. Otherwise a program that uses gradb_on_look may put off those that are still on their way
 * from a device, and report them with gradb_as_of when they are there. */
GRADB_API bool gradb_wants_numbers(gradb *g);
/* Scalars, and batches of evaluations, that are given from here on belong to that step, up to the
 * end of the running one. Negative: to the running one again. For programs that begin a step right
 * after the previous one. */
GRADB_API void gradb_as_of(gradb *g, int64_t step);
GRADB_API void gradb_log(gradb *g, const char *line);

/* ---- metrics -----------------------------------------------------------------------------------
 * The debugger's `metric` computes accuracy and the like from pairs of outputs and labels. libgradb
 * copies the values of the two nodes when they have run; a program that knows the pairs itself, at
 * its loss, gives them instead, which costs less. */

typedef enum gradb_pair { /* what outputs and labels are */
                          GRADB_PAIR_UNKNOWN = 0,
                          GRADB_PAIR_CLASSES, /* a score for each class along axis 1; numbers or
                                                 shares of classes */
                          GRADB_PAIR_LOGITS,  /* one score per label, positive above 0 */
                          GRADB_PAIR_PROBABILITIES, /* one score per label, positive from 0.5 on */
                          GRADB_PAIR_VALUES         /* numbers, of a regression */
} gradb_pair;

typedef struct gradb_batch {
    const gradb_tensor *outputs, *labels; /* in host memory */
    gradb_pair pair;
    bool has_ignore;
    int64_t ignore;     /* label that does not count */
    bool evaluation;    /* not of the training: counted separately, as eval_NAME */
    const double *loss; /* of the batch; NULL: unknown */
} gradb_batch;

/* Gives a batch to the metric of that name, or to all whose batches the program gives (NULL).
 * Returns false if there is none: forget about it until the debugger asks again. The numbers are
 * reported at the end of the step. */
GRADB_API bool gradb_metric_batch(gradb *g, const char *name, const gradb_batch *batch);
/* An evaluation is over: reports its numbers now rather than at the end of the step. */
GRADB_API void gradb_metric_evaluated(gradb *g);
/* What the debugger's command "metric" asks of the program (gradb_source.command): "add SPEC",
 * "found SPEC", "delete [NAME]", "clear", "list"; a program that gives the batches of a metric
 * passes "feed SPEC" on. "epoch": an epoch begins, which is otherwise seen by the scalar "epoch".
 * Writes at most `size` bytes of JSON. Do not call it from another thread while the training runs.
 */
GRADB_API gradb_answer gradb_metric(gradb *g, const char *request, char *reply, size_t size,
                                    char why[GRADB_WHY]);

/* Requests of the debugger that only the training program can carry out: check them after each
 * step. */
GRADB_API bool gradb_wants_stop(gradb *g); /* end the training cleanly */
/* Inside gradb_source.command, or on another thread while one runs: whether the debugger has asked
 * to interrupt it, or is gone. It may then end early. */
GRADB_API bool gradb_given_up(const gradb *g);
GRADB_API bool gradb_wants_checkpoint(gradb *g); /* true once per request */

#ifdef __cplusplus
}
#endif
#endif
