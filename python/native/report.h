// SPDX-License-Identifier: MIT
/* A node has run: noted in the tables of the step, and reported to libgradb where it is wanted. */
#ifndef GRADB_PYTHON_REPORT_H
#define GRADB_PYTHON_REPORT_H

#include "autograd.h"
#include "context.h"

/* tensors and records (origins, see graph.h) are tuples with one item per slot; before: a tuple of
 * the tensors that the node was computed from. */
int native_ran(struct native_context *context, PyObject *node, PyObject *tensors, PyObject *records,
               PyObject *before);

/* The same for a backward node whose outputs have no Python objects (seen.h). First ask whether
 * this can be done: 1, 0, or -1. before: the gradients that it was given. */
int native_can_run_unwrapped(struct native_context *context, PyObject *node,
                             const struct native_tensors *outputs);
int native_ran_unwrapped(struct native_context *context, PyObject *node,
                         const struct native_tensors *outputs, const struct native_tensors *before);

/* As native_ran, for a node with one output, whose origin is recorded. */
int native_ran_one(struct native_context *context, PyObject *node, PyObject *tensor,
                   PyObject *before);

/* As native_ran, for values that only the table of the step knows: their records are made. */
int native_ran_anew(struct native_context *context, PyObject *node, PyObject *tensors);

/* context->trace is that of the running step: a number made of which nodes have run in it, and of
 * how many nodes of the engine's each call has made. Equal numbers: the same has run. */
void native_begin_trace(struct native_context *context);

/* ran(context, node, tensors, records): see Reporter._ran. */
PyObject *native_report_ran(PyObject *module, PyObject *args);

#endif
