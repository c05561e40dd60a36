// SPDX-License-Identifier: MIT
/* Helpers for Python objects: references, calls, exceptions, and the slots of our types. */
#ifndef GRADB_PYTHON_OBJECTS_H
#define GRADB_PYTHON_OBJECTS_H

#include "native.h"

/* Replaces the reference at *place by `value`, which it takes over, and drops the old one. */
void native_swap(PyObject **place, PyObject *value);

/* 1, 0, or -1, as the caller of a question gets it: the truth of a new reference, or whether it
 * equals another object. The reference is dropped; NULL, with an exception: -1. */
int native_take_truth(PyObject *value);
int native_take_equal(PyObject *value, PyObject *other);

/* Calls a method with up to three arguments (NULL ends them) and drops what it returns. */
int native_call(PyObject *object, PyObject *method, PyObject *a, PyObject *b, PyObject *c);

/* Memory for twice as many items as *room, or for some where that is 0; what `items` has is kept.
 * NULL: out of memory, nothing is done. */
void *native_grow(void *items, size_t *room, size_t size);

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

/* For Py_tp_traverse and Py_tp_clear of a type. references: the offsets of its references in the
 * object, ended by 0. */
int native_visit(PyObject *object, const size_t *references, visitproc visit, void *arg);
int native_drop(PyObject *object, const size_t *references);

/* For Py_tp_dealloc: untracks and frees the object; `clear` drops its references. */
void native_dealloc(PyObject *object, inquiry clear);

/* Defines these three slots for a type that needs nothing else: visit_references, drop_references
 * and free_object. The arguments are the offsets of the references. */
#define NATIVE_COLLECTED(...)                                                                      \
    static const size_t reference_offsets[] = {__VA_ARGS__, 0};                                    \
    static int visit_references(PyObject *self, visitproc visit, void *arg)                        \
    {                                                                                              \
        return native_visit(self, reference_offsets, visit, arg);                                  \
    }                                                                                              \
    static int drop_references(PyObject *self)                                                     \
    {                                                                                              \
        return native_drop(self, reference_offsets);                                               \
    }                                                                                              \
    static void free_object(PyObject *self)                                                        \
    {                                                                                              \
        native_dealloc(self, drop_references);                                                     \
    }

#endif
