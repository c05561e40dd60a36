// SPDX-License-Identifier: MIT
/*
 * Everything that the agent consists of, and libgradb's functions. There is one context per agent:
 * Python makes it when the agent is complete, and closes it before libgradb's handle is freed
 * (context_type.c has the Python type).
 */
#ifndef GRADB_PYTHON_CONTEXT_H
#define GRADB_PYTHON_CONTEXT_H

#include <stdint.h>

#include "agent/gradb.h"
#include "native.h"

struct native_clock;
struct native_clearing;
struct native_seen;
struct native_marks;
struct native_known;

#define NATIVE_MAX_GROUPS 16 /* of an optimizer, whose rates are reported; as in events.py */

struct native_number {
    bool is_there;
    double value;
};

struct native_context {
    PyObject ob_base;

    /* Parts of the agent: records, except the last three. */
    PyObject *agent, *reporter, *graph, *steps, *live, *scaler, *events, *backward;
    struct native_clock *clock;
    struct native_clearing *clearing; /* the first of the list */
    PyObject *local;                  /* of modules.Modules: path and site of this thread */

    /* PyTorch's. */
    PyObject *tensor, *parameter; /* torch.Tensor, torch.nn.Parameter */
    PyObject *storage;            /* of a tensor: an object with nbytes() */
    PyObject *tracing;            /* torch._C._get_tracing_state */
    PyObject *has_gradients;      /* torch.is_grad_enabled */
    PyObject *modes;              /* torch._C._is_torch_function_mode_enabled */
    PyObject *undispatched;       /* torch._C._DisableTorchDispatch */

    /* gradb.torch's. */
    PyObject *apart;    /* guard.apart */
    PyObject *stand_in; /* ops.stand_in: calls an operator from the user's line; or None */
    PyObject *ref;      /* swapping.Ref */
    PyObject *node_type, *custom_type, *types, *type_of, *custom_mark; /* of backward.py */

    /* libgradb's. An older library lacks did_with_same, on_armed, try_enter and try_step: NULL. */
    struct gradb *handle; /* NULL: closed */
    void (*did)(struct gradb *, gradb_node);
    void (*did_with)(struct gradb *, gradb_node, const gradb_tensor *, size_t);
    void (*did_with_same)(struct gradb *, gradb_node, const gradb_tensor *, size_t,
                          const gradb_same *);
    void (*step_begin)(struct gradb *, int64_t);
    void (*step_end)(struct gradb *);
    void (*enter)(struct gradb *, gradb_phase);
    void (*scalar)(struct gradb *, const char *, double);
    void (*timing)(struct gradb *, const gradb_times *);
    bool (*is_connected)(const struct gradb *);
    bool (*wants_stop)(struct gradb *);
    bool (*wants_checkpoint)(struct gradb *);
    void (*on_armed)(struct gradb *, void (*)(void *), void *);
    bool (*try_enter)(struct gradb *, gradb_phase);
    bool (*try_step)(struct gradb *, int64_t);

    /* Idle steps (idle.h). */
    unsigned long thread;  /* the training thread */
    int idle_steps;        /* how many may pass without Python */
    bool idle_connected;   /* a debugger is connected during them */
    unsigned idle_changes; /* gradb.changes when that was decided */
    PyObject *recording;   /* whether a CUDA graph is being recorded; NULL: none can be */
    int wrapped;           /* calls of modules that go through an Entrance and Python's wrapper */
    bool inside;           /* of `outermost`, and nobody has asked for the path since */
    PyObject *outermost;   /* weak: the module that a step calls first; NULL: unknown */
    PyObject *outermost_path, *evaluation_path; /* its path, when it trains or evaluates */

    /* Watched steps. */
    struct native_seen *seen;   /* seen.h */
    struct native_marks *marks; /* marks.h */
    struct native_known *known; /* passes, the one used last first (known_pass.h) */
    unsigned passes_missed;     /* in a row that were not known */
    PyObject *codes, *sites;    /* of stack.py; NULL: not used */
    PyObject *scopes;           /* of reporter.py */
    PyObject *paths;            /* of modules.py */
    PyObject *traced;           /* the step of `trace`; NULL: none */
    uint64_t trace;             /* of which nodes have run in it, in which order, see report.h */
    uint64_t trace_base;

    /* Numbers of the running step that Python does not know of yet (numbers.h). */
    struct native_number loss;
    int rate_count;
    double rates[NATIVE_MAX_GROUPS];
};
extern PyTypeObject *native_context_type;

/* The context for which Python's wrappers are out of use (hand_over.h), borrowed; NULL: none. It is
 * only compared: it may be gone. */
extern const struct native_context *native_handed;
static inline bool native_is_handed_over(const struct native_context *context)
{
    return context == native_handed;
}
static inline void native_forget_handed(const struct native_context *context)
{
    if (context == native_handed) {
        native_handed = NULL;
    }
}

/* This thread is the training thread. */
bool native_is_ours(const struct native_context *context);

/* Begins a moment in which no function mode of the program sees what is asked of tensors. End it by
 * native_leave_apart, which takes over the result. */
PyObject *native_enter_apart(const struct native_context *context);
/* The same, but None where neither a mode nor a subclass of the program would see what is asked of
 * that tensor. */
PyObject *native_enter_apart_for(const struct native_context *context, PyObject *tensor);
/* -1: an exception was set before and is set still, or ending the moment raised one. */
int native_leave_apart(PyObject *apart);

/* A weak reference to a tensor (swapping.Ref). */
PyObject *native_refer(const struct native_context *context, PyObject *tensor);

/* Gives the exception that is set to agent.fault, which reports it once and turns the agent off.
 * -1: it is not a fault but an interrupt, and is set still. */
int native_report_fault(struct native_context *context);

/* 1, 0, or -1: what the agent does now needs Python at every operator or node. */
int native_is_watched_closely(const struct native_context *context);

#endif
