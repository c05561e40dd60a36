// SPDX-License-Identifier: MIT
#include "native.h"

static PyObject **reference(PyObject *object, size_t offset)
{
    return (PyObject **)((char *)object + offset);
}

int native_visit(PyObject *object, const size_t *references, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    for (; *references; references++) {
        Py_VISIT(*reference(object, *references));
    }
    return 0;
}

int native_drop(PyObject *object, const size_t *references)
{
    for (; *references; references++) {
        PyObject **at = reference(object, *references);
        Py_CLEAR(*at);
    }
    return 0;
}
