// SPDX-License-Identifier: MIT
#include "objects.h"

#include <stdlib.h>

void native_swap(PyObject **place, PyObject *value)
{
    PyObject *before = *place;
    *place = value;
    Py_XDECREF(before);
}

int native_take_truth(PyObject *value)
{
    int truth = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return truth;
}

int native_take_equal(PyObject *value, PyObject *other)
{
    int same = value ? PyObject_RichCompareBool(value, other, Py_EQ) : -1;
    Py_XDECREF(value);
    return same;
}

int native_call(PyObject *object, PyObject *method, PyObject *a, PyObject *b, PyObject *c)
{
    PyObject *done = PyObject_CallMethodObjArgs(object, method, a, b, c, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

void *native_grow(void *items, size_t *room, size_t size)
{
    size_t larger = *room > 0 ? 2 * *room : 256;
    void *grown = reallocarray(items, larger, size);
    if (grown) {
        *room = larger;
    }
    return grown;
}

struct native_error native_take_error(void)
{
    struct native_error error;
    PyErr_Fetch(&error.type, &error.value, &error.traceback);
    return error;
}

void native_normalize_error(struct native_error *error)
{
    PyErr_NormalizeException(&error->type, &error->value, &error->traceback);
    if (error->value && error->traceback) {
        PyException_SetTraceback(error->value, error->traceback);
    }
}

void native_restore_error(struct native_error error)
{
    PyErr_Restore(error.type, error.value, error.traceback);
}

void native_drop_error(struct native_error error)
{
    Py_XDECREF(error.type);
    Py_XDECREF(error.value);
    Py_XDECREF(error.traceback);
}

static PyObject **find_reference(PyObject *object, size_t offset)
{
    return (PyObject **)((char *)object + offset);
}

int native_visit(PyObject *object, const size_t *references, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    for (; *references; references++) {
        Py_VISIT(*find_reference(object, *references));
    }
    return 0;
}

int native_drop(PyObject *object, const size_t *references)
{
    for (; *references; references++) {
        PyObject **at = find_reference(object, *references);
        Py_CLEAR(*at);
    }
    return 0;
}

void native_dealloc(PyObject *object, inquiry clear)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    clear(object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}
