// SPDX-License-Identifier: MIT
/* Whether anybody zeroes the gradients, over idle steps: the base of clearing.Clearing, whose
 * docstring has the meaning of the fields. What each pass reads is adjacent. */
#ifndef GRADB_PYTHON_CLEARING_H
#define GRADB_PYTHON_CLEARING_H

#include "context.h"

struct native_clearing {
    PyObject ob_base;
    bool cleared, added, looked, asks, believed;
    unsigned gone; /* consecutive steps before whose first pass there was no gradient */
    long long since;
    PyObject *next;      /* NULL is None, as for the other references */
    PyObject *parameter; /* weak */
    unsigned long long seen;
    long long version;
    PyObject *optimizer;     /* weak */
    unsigned long long left; /* the gradient as the last pass left it; 0: none has */
    long long left_version;
};
extern PyType_Spec native_clearing_spec;
extern PyTypeObject *native_clearing_type;

/* An outermost backward pass into the parameters begins or has ended; an optimizer has stepped. */
int native_clearing_begins(struct native_context *context);
int native_clearing_ends(struct native_context *context);
int native_clearing_stepped(struct native_context *context, PyObject *optimizer);

#endif
