// SPDX-License-Identifier: MIT
/* One node of a backward pass: the base of backward.PassNode. It is the hook of its grad_fn, and
 * its own handle. */
#ifndef GRADB_PYTHON_PASS_NODE_H
#define GRADB_PYTHON_PASS_NODE_H

#include "context.h"

struct native_pass_node {
    PyObject ob_base;
    struct native_context *context;
    /* As backward.PassNode documents them; NULL is None. */
    PyObject *type, *mark, *operation, *name, *variable, *incoming, *nodes, *node;
    bool marked;
    PyObject *hooks; /* the dict of PyTorch's that it is in; NULL: none */
};
extern PyType_Spec native_pass_node_spec;
extern PyTypeObject *native_pass_node_type;

/* Like the hook, without a clock: what is reported when the node has run. */
int native_pass_ran(struct native_pass_node *own, PyObject *results, PyObject *before);

#endif
