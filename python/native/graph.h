// SPDX-License-Identifier: MIT
/* Which node an operator is, and which node made a tensor: the tables of graph.Graph. */
#ifndef GRADB_PYTHON_GRAPH_H
#define GRADB_PYTHON_GRAPH_H

#include "context.h"

/* The items of an origin, a tuple in the tables of graph.Graph. */
enum native_origin { ORIGIN_TENSOR, ORIGIN_VERSION, ORIGIN_NODE, ORIGIN_SLOT };

/* The next node of the family that graph.Graph has under `key`, when everything about it is known;
 * it counts as run. learnt: its inputs must be known too; else it only needs a number. NULL without
 * an exception: it is not known, and nothing was counted. */
PyObject *native_next_known(struct native_context *context, PyObject *key, bool learnt);

/* The node at that place of a family is the next one: it counts as run. 0: it is not, and nothing
 * was counted. */
int native_count_known(struct native_context *context, PyObject *family, Py_ssize_t ordinal);

/* Records that the tensor is the output `slot` of the node. Returns its origin. */
PyObject *native_note_output(struct native_context *context, PyObject *tensor, PyObject *node,
                             long slot);
/* The same for a tensor that the node wrote in place, and with it all views of its memory. */
PyObject *native_note_written(struct native_context *context, PyObject *tensor, PyObject *node,
                              long slot);

#endif
