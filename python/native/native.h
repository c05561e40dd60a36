// SPDX-License-Identifier: MIT
/*
 * gradb._native: what the PyTorch agent does at every operator, in C.
 *
 * Only the ways that nearly all operators and backward nodes take, of nodes that are known by now;
 * whatever is unusual goes to the Python code in gradb.torch, which can do all of it and does all
 * of it where this module is not there. So there is no state here that Python has not: the classes
 * of gradb.torch whose attributes are needed at every operator have a base here (records.c), in
 * which these lie.
 *
 * Built for the stable ABI of CPython 3.10 and later: one binary serves all of them. All functions
 * want the interpreter's lock. Unless said otherwise they return new references, NULL or -1 with an
 * exception set.
 */
#ifndef GRADB_PYTHON_NATIVE_H
#define GRADB_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030a0000
#include <Python.h>

#include <stdbool.h>

#include "agent/gradb.h"

/* Changes with what Python passes here or finds here: the two halves must be of the same tree. */
#define NATIVE_INTERFACE 2

/* ---- names.c: names of attributes, methods and keys, interned once ----------------------------
 */

struct native_names {
    PyObject *accumulate_grad, *backward_ran, *data_ptr, *dtype, *enter, *exit, *fault, *grad,
        *grad_fn, *hold, *inplace, *intercept, *is_cpu, *is_neg, *key, *local, *look, *metadata,
        *modules, *nbytes, *next_functions, *operator_raised, *operator_ran, *operators, *out,
        *path, *ran, *ran_as, *register_hook, *shape, *site, *storage_offset, *stride, *tell,
        *variable, *version, *base, *cdata, *dim, *is_complex, *is_floating_point;
};
extern struct native_names native_names;
int native_intern_names(void);

/* ---- records.c -------------------------------------------------------------------------------
 */

/* Classes of gradb.torch, and what of theirs lies here: see their docstrings. */
enum native_kind {
    NATIVE_AGENT,
    NATIVE_STEPS,
    NATIVE_TIMING,
    NATIVE_SCALER,
    NATIVE_LIVE,
    NATIVE_TELLING,
    NATIVE_GRAPH,
    NATIVE_FAMILY,
    NATIVE_NODE,
    NATIVE_PLACES,
    NATIVE_OPERATOR,
    NATIVE_MARK,
    NATIVE_KINDS
};
enum native_agent_field {
    AGENT_LOOKING,
    AGENT_DEAD,
    AGENT_IN_BACKWARD,
    AGENT_SHARDS,
    AGENT_DETAIL,
    AGENT_OVERFLOW,
    AGENT_STEPS,
    AGENT_LIVE,
    AGENT_TIMING,
    AGENT_SCALER,
    AGENT_TELLING
};
enum native_steps_field { STEPS_STEP, STEPS_FORWARD, STEPS_RUNNING };
enum native_timing_field { TIMING_ON, TIMING_AWAY };
enum native_scaler_field { SCALER_STEPPING, SCALER_SCALING };
enum native_live_field {
    LIVE_STEP,
    LIVE_NOW,
    LIVE_SCALES,
    LIVE_SCALE,
    LIVE_KEPT,
    LIVE_LEAVES,
    LIVE_LASTING
};
enum native_telling_field { TELLING_GRAPH, TELLING_PENDING };
enum native_graph_field {
    GRAPH_STEP,
    GRAPH_RAN,
    GRAPH_GROWN,
    GRAPH_LEAKED,
    GRAPH_FAMILIES,
    GRAPH_ORIGINS,
    GRAPH_LASTING,
    GRAPH_WRITERS
};
enum native_family_field { FAMILY_NODES, FAMILY_STEP, FAMILY_COUNT };
enum native_node_field {
    NODE_ID,
    NODE_NAME,
    NODE_STEP,
    NODE_ASIDE,
    NODE_LEARNT,
    NODE_MARK,
    NODE_ASKED,
    NODE_WANTS,
    NODE_PLACES,
    NODE_BACKWARD,
    NODE_GRADIENT
};
enum native_places_field { PLACES_COUNT, PLACES_ADDRESS, PLACES_FORMS };
enum native_operator_field { OPERATOR_NAME, OPERATOR_USUAL, OPERATOR_IN_PLACE, OPERATOR_COUNTS };
enum native_mark_field { MARK_NODE, MARK_OPERATOR };

#define NATIVE_FIELDS 11
struct native_record {
    PyObject_HEAD PyObject *at[NATIVE_FIELDS]; /* NULL is None */
};
extern PyTypeObject *native_kinds[NATIVE_KINDS];
int native_add_records(PyObject *module);
bool native_is_a(PyObject *object, enum native_kind kind);
/* A field of a record, by one of the numbers above: borrowed, and never fails. */
PyObject *native_get(PyObject *record, int field);
void native_set(PyObject *record, int field, PyObject *value);
/* The same of a reference that it takes over; NULL: -1, and nothing is set. */
int native_put(PyObject *record, int field, PyObject *value);
/* 1, 0, or -1: its truth. */
int native_is(PyObject *record, int field);

/* ---- context.c -------------------------------------------------------------------------------
 */

/* What the agent is made of, and libgradb's functions. One per agent; Python makes it when all of
 * the agent is there, and closes it before the handle is gone. */
struct native_context {
    PyObject_HEAD PyObject *agent, *telling, *graph, *steps, *live, *timing, *scaler; /* records */
    PyObject *local;   /* of modules.Modules: path and site of this thread */
    PyObject *tensor;  /* torch.Tensor */
    PyObject *apart;   /* ops.apart */
    PyObject *storage; /* of a tensor: what has nbytes() */
    PyObject *tracing; /* torch._C._get_tracing_state */
    PyObject *step_type, *custom_type, *types, *type_of, *custom_mark; /* of backward.py */
    struct gradb *handle;                                              /* NULL: closed */
    void (*did)(struct gradb *, gradb_node);
    void (*did_with)(struct gradb *, gradb_node, const gradb_tensor *, size_t);
    /* NULL: an older libgradb */
    void (*did_with_same)(struct gradb *, gradb_node, const gradb_tensor *, size_t,
                          const gradb_same *);
};

extern PyType_Spec native_context_spec;
extern PyTypeObject *native_context_type;

/* A reference in place of the one that is there. */
void native_swap(PyObject **place, PyObject *value);
/* Calls a method, and drops what it returns. */
int native_call(PyObject *object, PyObject *method, PyObject *a, PyObject *b, PyObject *c);
/* What ends an object of a type of ours, whose references `clear` drops. */
void native_dealloc(PyObject *object, inquiry clear);
/* Begins a moment in which no function mode of the program's hears of what is asked of tensors.
 * native_leave_apart ends it and drops what this returns; an exception that is set stays so. */
PyObject *native_enter_apart(const struct native_context *context);
int native_leave_apart(PyObject *apart);
/* Gives the exception that is set to agent.fault, which says it once and turns the agent off. -1:
 * it is none of ours but an interrupt, and stays set. */
int native_fault(struct native_context *context);
/* 1, 0, or -1: what the agent does now needs Python at every operator or node. */
int native_is_watched_closely(const struct native_context *context);

/* ---- telling.c -------------------------------------------------------------------------------
 */

/* What Python keeps in tuples: of values.Places for an output, and of graph.Graph's origins. */
enum native_form {
    FORM_SHAPE,
    FORM_STRIDES,
    FORM_DTYPE,
    FORM_REACH, /* bytes from the first element to behind the last */
    FORM_SIZE,  /* bytes of an element */
    FORM_KIND,
    FORM_DENSE /* its elements lie side by side, in whatever order of the axes */
};
enum native_origin { ORIGIN_TENSOR, ORIGIN_VERSION, ORIGIN_NODE, ORIGIN_SLOT };

/* The next node of a family that graph.Graph has under `key`, counted, when all is known of it:
 * learnt where that is asked for, else it has a number. NULL without an exception: it is not, and
 * nothing was counted. */
PyObject *native_next_known(struct native_context *context, PyObject *key, bool learnt);
/* The tensor is the output of that slot from now on. Its origin. */
PyObject *native_produced(struct native_context *context, PyObject *tensor, PyObject *node,
                          long slot);
/* The same of one that the node has written in place, and with it all views of its memory. */
PyObject *native_wrote(struct native_context *context, PyObject *tensor, PyObject *node, long slot);
/* 1, 0, or -1: the answer of a method without arguments. */
int native_asks(PyObject *tensor, PyObject *method);
/* Leaves the node's mark on what computed the tensor, when it has a gradient. */
int native_mark(PyObject *tensor, PyObject *node);
/* 1, 0, or -1: the tensor is as values.Places has known it, by its form and in *ret, but for its
 * address, which *ret gets. */
int native_place(struct native_context *context, PyObject *tensor, PyObject *form,
                 gradb_tensor *ret);
/* `bytes` of memory have all elements of `size` bytes from the one at `offset`, which reach so far.
 */
bool native_is_inside(long long offset, long long bytes, long long reach, long long size);
/* A node has run: tensors and records (origins) are tuples with one entry per slot. `before`: the
 * tensors that it was computed from, a tuple. */
int native_ran(struct native_context *context, PyObject *node, PyObject *tensors, PyObject *records,
               PyObject *before);

/* ran(context, node, tensors, records): see Telling._ran. */
PyObject *native_tell_ran(PyObject *module, PyObject *args);

/* ---- same.c ----------------------------------------------------------------------------------
 */

#define NATIVE_MAX_SAME 16 /* outputs, and tensors before, that are compared */

/* The structs of a values.Places; NULL with an exception. */
gradb_tensor *native_structs(PyObject *places);
/* For gradb_did_with_same: which of a node's outputs are what was told of one of the tensors
 * `before` in this step. 1 when any is, 0 when none, -1. */
int native_same(struct native_context *context, PyObject *places, const gradb_tensor *structs,
                Py_ssize_t count, PyObject *before, gradb_same ret[NATIVE_MAX_SAME]);

/* ---- tensors.c -------------------------------------------------------------------------------
 */

/* libtorch has the functions that native_read needs for tensors of that type. */
bool native_can_read(gradb_dtype dtype);
/* 1, 0, or -1: the tensor, which is not lazily negated, is as `known` says but for its address,
 * which *ret gets; lies in the host's memory, and all of it, which reaches so many bytes, is there.
 */
int native_read(PyObject *tensor, const gradb_tensor *known, long long reach, long long size,
                const void **ret);
/* read_by(addresses, strided, cpu, dtypes), reads(tensor, address of a struct, reach, size): see
 * reading.py. */
PyObject *native_read_by(PyObject *module, PyObject *args);
PyObject *native_reads(PyObject *module, PyObject *args);

/* ---- operators.c, passes.c, source.c ----------------------------------------------------------
 */

extern PyType_Spec native_operators_spec, native_step_spec, native_source_spec;
extern PyTypeObject *native_step_type;
/* registrar(others, type of dict): what is to be torch.autograd.Function._register_hook. */
PyObject *native_registrar(PyObject *module, PyObject *args);
/* hook_all(context, roots, steps, handles, names): see backward.Backward. */
PyObject *native_hook_all(PyObject *module, PyObject *args);

#endif
