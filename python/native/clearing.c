// SPDX-License-Identifier: MIT
/* Whether somebody sets the gradients back, over idle steps: see training.Clearing. */
#include "native.h"

/* What tells one state of a gradient from another: (id, version). None of none. */
static PyObject *state_of(PyObject *gradient)
{
    if (gradient == Py_None) {
        return Py_NewRef(Py_None);
    }
    PyObject *id = PyLong_FromVoidPtr(gradient);
    PyObject *version = id ? native_version(gradient) : NULL;
    PyObject *state = version ? PyTuple_Pack(2, id, version) : NULL;
    Py_XDECREF(version);
    Py_XDECREF(id);
    return state;
}

/* The gradient of the parameter that is watched; None: it has none. */
static PyObject *gradient_of(PyObject *clearing)
{
    PyObject *reference = native_get(clearing, CLEARING_PARAMETER);
    PyObject *parameter = reference == Py_None ? Py_None : PyWeakref_GetObject(reference);
    if (!parameter || parameter == Py_None) {
        return Py_XNewRef(parameter);
    }
    Py_INCREF(parameter);
    PyObject *gradient = PyObject_GetAttr(parameter, native_names.grad);
    Py_DECREF(parameter);
    return gradient;
}

/* 1, 0, or -1: there is nothing to look for in this step. */
static int is_over(PyObject *clearing)
{
    int cleared = native_is(clearing, CLEARING_CLEARED);
    return cleared != 0 ? cleared : native_is(clearing, CLEARING_SINCE);
}

/* A gradient that nobody seems to have touched since the last step: whether it is 0 all the same is
 * for Python to find out. */
static int look_at_value(PyObject *clearing, PyObject *gradient)
{
    int added = native_is(clearing, CLEARING_ADDED);
    if (added != 0) {
        return added < 0 ? -1 : 0;
    }
    return native_call(clearing, native_names.look_at, gradient, NULL, NULL);
}

/* 1: the gradient that is watched and its state are there, new; 0: there is nothing to look for;
 * -1.
 */
static int take_state(PyObject *clearing, PyObject **gradient, PyObject **state)
{
    int over = is_over(clearing);
    if (over != 0) {
        return over < 0 ? -1 : 0;
    }
    *gradient = gradient_of(clearing);
    *state = *gradient ? state_of(*gradient) : NULL;
    if (!*state) {
        Py_CLEAR(*gradient);
    }
    return *state ? 1 : -1;
}

/* 1, 0, or -1 */
static int is_as_seen(PyObject *clearing, PyObject *state)
{
    return PyObject_RichCompareBool(state, native_get(clearing, CLEARING_SEEN), Py_EQ);
}

int native_clearing_begins(struct native_context *context)
{
    PyObject *clearing = context->clearing, *gradient, *state;
    int there = take_state(clearing, &gradient, &state);
    if (there <= 0) {
        return there;
    }
    int same = is_as_seen(clearing, state);
    int status = same < 0 ? -1 : 0;
    if (same == 0 || (same > 0 && gradient == Py_None)) {
        native_set(clearing, CLEARING_CLEARED, Py_True);
    } else if (same > 0) {
        status = look_at_value(clearing, gradient);
    }
    Py_DECREF(state);
    Py_DECREF(gradient);
    return status;
}

int native_clearing_ends(struct native_context *context)
{
    PyObject *clearing = context->clearing, *gradient, *state;
    int there = take_state(clearing, &gradient, &state);
    if (there <= 0) {
        return there;
    }
    int same = is_as_seen(clearing, state);
    if (same == 0 && gradient != Py_None) {
        native_set(clearing, CLEARING_ADDED, Py_True);
    }
    Py_DECREF(gradient);
    native_put(clearing, CLEARING_SEEN, state);
    return same < 0 ? -1 : 0;
}

/* ---- the optimizer has stepped --------------------------------------------------------------- */

/* The next step's gradients are looked for at this parameter. */
static int watch(PyObject *clearing, PyObject *parameter, PyObject *gradient)
{
    PyObject *before = native_get(clearing, CLEARING_PARAMETER);
    bool same = before != Py_None && PyWeakref_GetObject(before) == parameter;
    if ((!same &&
         native_put(clearing, CLEARING_PARAMETER, PyWeakref_NewRef(parameter, NULL)) < 0) ||
        native_put(clearing, CLEARING_SEEN, state_of(gradient)) < 0) {
        return -1;
    }
    native_set(clearing, CLEARING_CLEARED, Py_False);
    return 1;
}

/* 1: it is watched; 0: it has no gradient; -1. */
static int try_parameter(PyObject *clearing, PyObject *parameter)
{
    PyObject *gradient = parameter ? PyObject_GetAttr(parameter, native_names.grad) : NULL;
    int status = gradient ? 0 : -1;
    if (gradient && gradient != Py_None) {
        status = watch(clearing, parameter, gradient);
    }
    Py_XDECREF(gradient);
    return status;
}

/* The same of a parameter group. */
static int try_group(PyObject *clearing, PyObject *group)
{
    PyObject *parameters =
        group && PyDict_Check(group) ? PyDict_GetItemWithError(group, native_names.params) : NULL;
    if (!parameters || !PyList_Check(parameters)) {
        return PyErr_Occurred() ? -1 : 0;
    }
    int status = 0;
    Py_INCREF(parameters);
    for (Py_ssize_t i = 0; status == 0 && i < PyList_Size(parameters); i++) {
        PyObject *parameter = Py_XNewRef(PyList_GetItem(parameters, i));
        status = try_parameter(clearing, parameter);
        Py_XDECREF(parameter);
    }
    Py_DECREF(parameters);
    return status;
}

int native_clearing_stepped(struct native_context *context, PyObject *optimizer)
{
    PyObject *clearing = context->clearing;
    int since = native_is(clearing, CLEARING_SINCE);
    if (since != 0) {
        return since < 0 ? -1 : 0;
    }
    if (native_is_true(clearing, CLEARING_ADDED) && !native_is_true(clearing, CLEARING_CLEARED)) {
        return native_call(clearing, native_names.stepped, optimizer, NULL, NULL);
    }
    native_set(clearing, CLEARING_CLEARED, Py_True);
    native_set(clearing, CLEARING_ADDED, Py_False);
    PyObject *groups = PyObject_GetAttr(optimizer, native_names.param_groups);
    int status = groups ? 0 : -1;
    for (Py_ssize_t i = 0; status == 0 && PyList_Check(groups) && i < PyList_Size(groups); i++) {
        PyObject *group = Py_XNewRef(PyList_GetItem(groups, i));
        status = try_group(clearing, group);
        Py_XDECREF(group);
    }
    Py_XDECREF(groups);
    return status < 0 ? -1 : 0;
}
