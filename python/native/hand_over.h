// SPDX-License-Identifier: MIT
/*
 * While steps are idle, Python's wrappers are out of use: of the modules, only those that forward
 * passes begin with are noticed (Entrance), and the hooks of optimizers are methods of a context.
 * That ends at once when the debugger wants reports of nodes, at any point of the training.
 */
#ifndef GRADB_PYTHON_HAND_OVER_H
#define GRADB_PYTHON_HAND_OVER_H

#include "native.h"

extern PyType_Spec native_entrance_spec;

/* Methods of a context, see the table in context_type.c. */
PyObject *native_hand_over(PyObject *context, PyObject *on);
PyObject *native_before_step(PyObject *context, PyObject *const *args, Py_ssize_t count);
PyObject *native_after_step(PyObject *context, PyObject *const *args, Py_ssize_t count);

/* frame_setter(regions, original, wrapper): stands in for the wrapper, see regions.Regions. */
PyObject *native_frame_setter(PyObject *module, PyObject *args);

#endif
