// SPDX-License-Identifier: MIT
/*
 * Calls of PyTorch's functions, seen before PyTorch looks for overrides.
 *
 * The C functions of torch.* and Tensor.* are hooked where Python calls them. A known call then
 * costs no search for overrides in PyTorch and no call of the mode. Whatever is not usual runs as
 * if there were no hook, and so through the mode, which stays in place.
 *
 * What is replaced is `vectorcall` of the function's object: its hash and its equality are made of
 * its other fields. Only functions that take a tuple and a dict are hooked; the interpreter calls
 * all others without looking at that field. Functions of PyTorch's that are written in Python ask
 * for overrides themselves, and then call handle_torch_function, which is replaced too.
 */
#ifndef GRADB_PYTHON_FUNCTIONS_H
#define GRADB_PYTHON_FUNCTIONS_H

#include "operators.h"

/* The mode was called with a usual operator: the next call of the function goes through a hook. */
void native_note_function(const struct native_call *call, PyObject *operation);

/* Functions of the Python module, see its table in module.c and functions.py. */
PyObject *native_handled(PyObject *module, PyObject *none);
PyObject *native_handle(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *native_hook_by(PyObject *module, PyObject *args);
PyObject *native_hook_functions(PyObject *module, PyObject *mode);

#endif
