// SPDX-License-Identifier: MIT
/* What stands in for sys.excepthook, and looks like it to the program. */
#include "native.h"

static PyObject *called; /* for good */

static PyObject *excepthook(PyObject *self, PyObject *args)
{
    (void)self;
    return PyObject_Call(called, args, NULL);
}

static PyMethodDef method = {
    "excepthook", excepthook, METH_VARARGS,
    "excepthook($module, exctype, value, traceback, /)\n--\n\n"
    "Handle an exception by displaying it with a traceback on sys.stderr."};

PyObject *native_excepthook(PyObject *module, PyObject *callable)
{
    (void)module;
    PyObject *sys = PyImport_ImportModule("sys");
    PyObject *name = sys ? PyUnicode_FromString("sys") : NULL;
    PyObject *made = NULL;
    if (name) {
        native_swap(&called, Py_NewRef(callable));
        made = PyCFunction_NewEx(&method, sys, name);
    }
    Py_XDECREF(name);
    Py_XDECREF(sys);
    return made;
}
