// SPDX-License-Identifier: MIT
/* The updates of an optimizer's parameters whose nodes are known. All others are optim.Optimizers'
 * in Python. */
#include "module.h"

#include "context.h"
#include "names.h"
#include "objects.h"
#include "records.h"
#include "report.h"
#include "tensors.h"

/* Of an optim._Told. */
enum told { TOLD_OPTIMIZER, TOLD_PARAMETER, TOLD_NODE, TOLD_FORM, TOLD_COUNT };

/* The state of a parameter has the form that optim._form_of_state gave it: the same keys, in
 * order, then the types of their values. state: borrowed; NULL: there is none. */
static int has_form(PyObject *state, PyObject *form)
{
    PyObject *key, *value;
    Py_ssize_t count = state && PyDict_Check(state) ? PyDict_Size(state) : 0;
    int same = PyTuple_Size(form) == 2 * count;
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; same > 0 && i < count && PyDict_Next(state, &at, &key, &value); i++) {
        bool typed = (PyObject *)Py_TYPE(value) == PyTuple_GetItem(form, count + i);
        same = typed ? PyObject_RichCompareBool(key, PyTuple_GetItem(form, i), Py_EQ) : 0;
    }
    return same;
}

/* What is known of the parameter still holds, see optim._Told. */
static int is_valid(PyObject *known, PyObject *optimizer, PyObject *states, PyObject *parameter)
{
    if (!PyTuple_Check(known) || PyTuple_Size(known) != TOLD_COUNT ||
        PyWeakref_GetObject(PyTuple_GetItem(known, TOLD_OPTIMIZER)) != optimizer ||
        PyWeakref_GetObject(PyTuple_GetItem(known, TOLD_PARAMETER)) != parameter) {
        return PyErr_Occurred() ? -1 : 0;
    }
    PyObject *state = Py_XNewRef(PyDict_GetItemWithError(states, parameter));
    int same = PyErr_Occurred() ? -1 : has_form(state, PyTuple_GetItem(known, TOLD_FORM));
    Py_XDECREF(state);
    return same;
}

/* The node of the parameter's update; NULL without an exception: it is for Python. */
static PyObject *find_node(PyObject *told, PyObject *optimizer, PyObject *states,
                           PyObject *parameter)
{
    PyObject *key = PyLong_FromVoidPtr(parameter); /* what id() gives */
    PyObject *known = key ? Py_XNewRef(PyDict_GetItemWithError(told, key)) : NULL;
    int valid = known ? is_valid(known, optimizer, states, parameter) : 0;
    PyObject *node = valid > 0 ? Py_NewRef(PyTuple_GetItem(known, TOLD_NODE)) : NULL;
    Py_XDECREF(known);
    Py_XDECREF(key);
    return node;
}

static int has_gradient(PyObject *parameter)
{
    if (native_has_no_gradient(parameter)) {
        return 0;
    }
    PyObject *gradient = PyObject_GetAttr(parameter, native_names.grad);
    Py_XDECREF(gradient);
    return gradient ? gradient != Py_None : -1;
}

static int report_update(struct native_context *context, PyObject *node, PyObject *parameter)
{
    PyObject *tensors = PyTuple_Pack(1, parameter);
    int status = tensors ? native_ran_anew(context, node, tensors) : -1;
    Py_XDECREF(tensors);
    return status;
}

PyObject *native_updated(PyObject *module, PyObject *args)
{
    struct native_context *context;
    PyObject *told, *optimizer, *states, *parameters;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!OO!O!:updated", native_context_type, &context, &PyDict_Type,
                          &told, &optimizer, &PyDict_Type, &states, &PyList_Type, &parameters)) {
        return NULL;
    }
    PyObject *others = PyList_New(0);
    int status = others ? 0 : -1;
    for (Py_ssize_t i = 0; status == 0 && i < PyList_Size(parameters); i++) {
        PyObject *parameter = Py_NewRef(PyList_GetItem(parameters, i));
        int stepped = has_gradient(parameter);
        PyObject *node = stepped > 0 ? find_node(told, optimizer, states, parameter) : NULL;
        status = node ? report_update(context, node, parameter) : PyErr_Occurred() ? -1 : 0;
        if (stepped > 0 && !node && status == 0) {
            status = PyList_Append(others, parameter);
        }
        Py_XDECREF(node);
        Py_DECREF(parameter);
    }
    if (status < 0) {
        Py_CLEAR(others);
    }
    return others;
}
