// SPDX-License-Identifier: MIT
/*
 * The values that backward nodes have computed in this step and the last one, where Python has no
 * object for them: the rows of graph.Graph and live.Live that were not made. They are made when
 * somebody asks. A value is held by a weak reference.
 */
#ifndef GRADB_PYTHON_SEEN_H
#define GRADB_PYTHON_SEEN_H

#include <stdint.h>

#include "context.h"

struct native_value {
    void *tensor;   /* see autograd.h; an undefined one: the slot is empty; NULL: see let_go */
    PyObject *node; /* graph.Node, which the table holds */
    uint32_t slot;
    uint32_t writes; /* how often it had been written in place */
};

/* The node has computed it in the running step. false: out of memory, it is not noted. */
bool native_see(struct native_context *context, void *tensor, PyObject *node, uint32_t slot);

/* What a tensor is in this step; NULL: it was not seen. */
const struct native_value *native_find_seen(const struct native_context *context, void *tensor);

/* Forgets all of it, for a context that ends. */
void native_forget_seen(struct native_context *context);

/* Methods of a Context: see context_type.c. */
PyObject *native_origin_of(PyObject *context, PyObject *tensor);
PyObject *native_has_seen(PyObject *context, PyObject *number);
PyObject *native_let_go(PyObject *context, PyObject *address);
PyObject *native_take_seen(PyObject *context, PyObject *none);

/* The tensor's origin (graph.h) is what was seen of it, or `origin` (borrowed, or NULL) where that
 * is as new. NULL without an exception: it has none. */
PyObject *native_latest_origin(struct native_context *context, PyObject *tensor, PyObject *origin);

#endif
