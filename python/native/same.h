// SPDX-License-Identifier: MIT
/* Which outputs are just another view of a value that was reported before in the same step: a view,
 * a transpose, a gradient that is passed on. */
#ifndef GRADB_PYTHON_SAME_H
#define GRADB_PYTHON_SAME_H

#include "agent/gradb.h"
#include "autograd.h"
#include "context.h"

#define NATIVE_MAX_SAME 16 /* outputs, and tensors before, that are compared */

/* For gradb_did_with_same. structs: those of `places`, `count` of them; before: the tensors that
 * the node was computed from, a tuple. 1: ret[] says what each output is the same as; 0: none is;
 * -1. */
int native_find_same(struct native_context *context, PyObject *places, const gradb_tensor *structs,
                     Py_ssize_t count, PyObject *before, gradb_same ret[NATIVE_MAX_SAME]);

/* The same where neither the outputs nor the tensors before have Python objects. */
int native_find_same_unwrapped(struct native_context *context, PyObject *places, size_t count,
                               const struct native_tensors *before,
                               gradb_same ret[NATIVE_MAX_SAME]);

#endif
