// SPDX-License-Identifier: MIT
/*
 * gradb._native: what the PyTorch agent does at every operator, in C.
 *
 * Only the ways that nearly all operators and backward nodes take, of nodes that are known by now;
 * whatever is unusual goes to the Python code in gradb.torch, which can do all of it and does all
 * of it where this module is not there. So there is no state here that Python has not: nodes,
 * tables and what is on at the moment are Python's objects, read and written as Python would.
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
#define NATIVE_INTERFACE 1

/* Names of attributes and keys, interned once. */
struct native_names {
    PyObject *intercept, *operator_raised, *operator_ran, *usual, *name, *looking, *shards,
        *overflow, *detail, *dead, *in_backward, *timing, *on, *telling, *graph, *steps, *step,
        *forward, *running, *scaler, *stepping, *scaling, *live, *modules, *local, *path, *site,
        *families, *nodes, *count, *learnt, *id, *aside, *ran, *grown, *pending, *asked, *wants,
        *places, *forms, *address, *away, *now, *step_, *scales, *scale, *kept, *origins, *mark,
        *metadata, *key, *grad_fn, *requires_grad, *version, *shape, *stride, *dtype, *is_cpu,
        *is_neg, *storage_offset, *nbytes, *data_ptr, *look, *fault, *out, *inplace, *lasting,
        *grad, *gradient, *operator, * node, *backward, *variable, *accumulate, *next_functions,
        *register_hook, *backward_ran, *enter, *exit, *gathered, *tell, *hold, *ran_as, *leaked,
        *remove;
};
extern struct native_names native_names;

/* What the agent is made of, and libgradb's functions. One per agent; Python makes it when all of
 * the agent is there, and closes it before the handle is gone. */
struct native_context {
    PyObject_HEAD PyObject *agent, *telling, *graph, *steps, *live, *timing, *scaler, *local;
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

/* ---- context.c -------------------------------------------------------------------------------
 */

extern PyType_Spec native_context_spec;
extern PyTypeObject *native_context_type;

/* 1, 0, or -1: the truth of an attribute. */
int native_is(PyObject *object, PyObject *name);
/* 1, 0, or -1: whether an attribute is None. */
int native_is_none(PyObject *object, PyObject *name);
/* A reference in place of the one that is there. */
void native_swap(PyObject **place, PyObject *value);
/* Gives the exception that is set to agent.fault, which says it once and turns the agent off. */
void native_fault(struct native_context *context);

/* ---- telling.c -------------------------------------------------------------------------------
 */

/* The next node of a family (graph.Graph) that the table has under `key`, counted, when all is
 * known of it: learnt where that is asked for, else it has a number. NULL without an exception: it
 * is not, and nothing was counted. */
PyObject *native_next_known(struct native_context *context, PyObject *key, bool learnt);
/* The tensor is the output of that slot from now on. Its origin. */
PyObject *native_produced(struct native_context *context, PyObject *tensor, PyObject *node,
                          long slot);
/* Leaves the node's mark on what computed the tensor, when it has a gradient. */
int native_mark(struct native_context *context, PyObject *tensor, PyObject *node);
/* A node has run: tensors and records (origins) are tuples with one entry per slot. `before`: the
 * tensors that it was computed from, NULL: not known. */
int native_ran(struct native_context *context, PyObject *node, PyObject *tensors, PyObject *records,
               PyObject *before);

/* ---- same.c ----------------------------------------------------------------------------------
 */

/* The members of what Python keeps in tuples: of values.Places for an output, and of
 * graph.Graph's origins. */
enum native_form {
    NATIVE_FORM_SHAPE,
    NATIVE_FORM_STRIDES,
    NATIVE_FORM_DTYPE,
    NATIVE_FORM_REACH, /* bytes from the first element to behind the last */
    NATIVE_FORM_SIZE,  /* bytes of an element */
    NATIVE_FORM_KIND,
    NATIVE_FORM_DENSE /* its elements lie side by side, in whatever order of the axes */
};
enum native_origin {
    NATIVE_ORIGIN_TENSOR,
    NATIVE_ORIGIN_VERSION,
    NATIVE_ORIGIN_NODE,
    NATIVE_ORIGIN_SLOT
};
#define NATIVE_MAX_SAME 16 /* outputs, and tensors before, that are compared */

/* The structs of a values.Places. */
gradb_tensor *native_structs(PyObject *places);
/* For gradb_did_with_same: which of a node's outputs are what was told of one of the tensors
 * `before`, a tuple, in this step. 1 when any is, 0 when none, -1. */
int native_same(struct native_context *context, PyObject *places, const gradb_tensor *structs,
                Py_ssize_t count, PyObject *before, gradb_same ret[NATIVE_MAX_SAME]);

/* ---- operators.c, passes.c -------------------------------------------------------------------
 */

extern PyType_Spec native_operators_spec, native_step_spec;
/* hook_all(context, roots, steps, handles, names, key): see backward.Backward. */
PyObject *native_hook_all(PyObject *module, PyObject *args);

#endif
