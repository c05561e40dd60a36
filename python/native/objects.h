// SPDX-License-Identifier: MIT
/* Helpers for Python objects: references, calls, exceptions, and the slots of our types. */
#ifndef GRADB_PYTHON_OBJECTS_H
#define GRADB_PYTHON_OBJECTS_H

#include "native.h"

/* Replaces the reference at *place by `value`, which it takes over, and drops the old one. */
void native_swap(PyObject **place, PyObject *value);

/* Calls a method with up to three arguments (NULL ends them) and drops what it returns. */
int native_call(PyObject *object, PyObject *method, PyObject *a, PyObject *b, PyObject *c);

/* ---- exceptions ------------------------------------------------------------------------------ */

/* An exception that was taken off the interpreter; `type` is NULL where none was set. */
struct native_error {
    PyObject *type, *value, *traceback;
};

struct native_error native_take_error(void);
/* Makes `value` an instance that knows its traceback. */
void native_normalize_error(struct native_error *error);
/* Sets the exception again, in place of one that is set; it is taken over. */
void native_restore_error(struct native_error error);
void native_drop_error(struct native_error error);

/* ---- what the garbage collector asks of objects of our types --------------------------------- */

/* For Py_tp_traverse and Py_tp_clear of a type. references: the offsets of its references in the
 * object, ended by 0. */
int native_visit(PyObject *object, const size_t *references, visitproc visit, void *arg);
int native_drop(PyObject *object, const size_t *references);

/* For Py_tp_dealloc: untracks and frees the object; `clear` drops its references. */
void native_dealloc(PyObject *object, inquiry clear);

#endif
