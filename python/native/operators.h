// SPDX-License-Identifier: MIT
/* Calls of operators, as the mode of ops.py and the hooks of functions.c see them. */
#ifndef GRADB_PYTHON_OPERATORS_H
#define GRADB_PYTHON_OPERATORS_H

#include "context.h"

struct native_operators {
    PyObject ob_base;
    struct native_context *context; /* NULL: everything goes to Python */
    PyObject *known; /* ops.OperatorMode.operators: function -> ops._Operator, or None */
};

/* A call as PyTorch passes it on; borrowed. */
struct native_call {
    struct native_operators *mode;
    PyObject *function, *types, *args;
    PyObject *keywords; /* Py_None: there are none */
    /* Does the call. */
    PyObject *(*run)(const struct native_call *call);
    void *ctx;
    bool writes;     /* the operator always writes its first argument */
    bool overwrites; /* it does, always or in this call (inplace=True) */
};

/* 1, 0, or -1: the operator, an ops._Operator, needs no Python in this call. Sets `writes` and
 * `overwrites`. */
int native_is_usual_call(struct native_call *call, PyObject *operation);

/* Does a usual call, and reports it. */
PyObject *native_run_usual(const struct native_call *call, PyObject *operation);

#endif
