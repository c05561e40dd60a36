// SPDX-License-Identifier: MIT
/* Whether what was found before still holds: what a node reads (graph.Node.edges), and where a
 * module keeps a tensor (members.Held). */
#ifndef GRADB_PYTHON_INPUTS_H
#define GRADB_PYTHON_INPUTS_H

#include "context.h"

/* 1, 0, or -1: the tensors among the arguments come from the nodes that the node's edges name. 0
 * also where only Python can answer. */
int native_reads_same(struct native_context *context, PyObject *node, PyObject *args,
                      PyObject *keywords);

/* in_place(held, chain): members.in_place. */
PyObject *native_in_place(PyObject *module, PyObject *args);

#endif
