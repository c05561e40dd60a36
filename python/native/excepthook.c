// SPDX-License-Identifier: MIT
/* A stand-in for sys.excepthook that looks like the original to the program. */
#include "module.h"

#include "objects.h"

static PyObject *hooked_function; /* lives as long as the process */

static PyObject *call_hook(PyObject *self, PyObject *args)
{
    (void)self;
    return PyObject_Call(hooked_function, args, NULL);
}

static PyMethodDef method = {
    "excepthook", call_hook, METH_VARARGS,
    "excepthook($module, exctype, value, traceback, /)\n--\n\n"
    "Handle an exception by displaying it with a traceback on sys.stderr."};

PyObject *native_excepthook(PyObject *module, PyObject *callable)
{
    (void)module;
    PyObject *sys = PyImport_ImportModule("sys");
    PyObject *name = sys ? PyUnicode_FromString("sys") : NULL;
    PyObject *made = NULL;
    if (name) {
        native_swap(&hooked_function, Py_NewRef(callable));
        made = PyCFunction_NewEx(&method, sys, name);
    }
    Py_XDECREF(name);
    Py_XDECREF(sys);
    return made;
}
