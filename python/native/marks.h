// SPDX-License-Identifier: MIT
/*
 * Which operator has made a grad_fn, for the nodes of backward passes: backward.Mark. It is kept
 * here rather than in the grad_fn's metadata, which would take a dict for each. A mark is forgotten
 * some steps after its own, whether its grad_fn still exists or not.
 */
#ifndef GRADB_PYTHON_MARKS_H
#define GRADB_PYTHON_MARKS_H

#include "context.h"

/* Leaves the node's mark on the tensor's grad_fn, where it has one. */
int native_mark(struct native_context *context, PyObject *tensor, PyObject *node);

/* The same for the address of a TensorImpl, where nodes are known (autograd.h). */
int native_mark_unwrapped(struct native_context *context, void *tensor, PyObject *node);

/* The mark of a grad_fn, borrowed; NULL without an exception: it has none here, but perhaps one in
 * its metadata. */
PyObject *native_find_mark(const struct native_context *context, PyObject *function);

/* Forgets all, for a context that ends. */
void native_forget_marks(struct native_context *context);

/* Methods of a Context, see context_type.c. */
PyObject *native_mark_output(PyObject *context, PyObject *args);
PyObject *native_mark_of(PyObject *context, PyObject *function);

#endif
