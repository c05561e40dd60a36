// SPDX-License-Identifier: MIT
/* A node has run: noted in the tables of the step, and reported to libgradb where it is wanted. */
#ifndef GRADB_PYTHON_REPORT_H
#define GRADB_PYTHON_REPORT_H

#include "context.h"

/* tensors and records (origins, see graph.h) are tuples with one item per slot; before: a tuple of
 * the tensors that the node was computed from. */
int native_ran(struct native_context *context, PyObject *node, PyObject *tensors, PyObject *records,
               PyObject *before);

/* The same for values that only the table of the step knows: their records are made. */
int native_ran_anew(struct native_context *context, PyObject *node, PyObject *tensors);

/* ran(context, node, tensors, records): see Reporter._ran. */
PyObject *native_report_ran(PyObject *module, PyObject *args);

#endif
