// SPDX-License-Identifier: MIT
/* The numbers of an idle step: its loss, learning rates and batch; see events.py. Whatever is no
 * plain number in host memory is Python's. */
#include "native.h"

#define MAX_GROUPS 16 /* as events.py has it */

/* ---- the loss -------------------------------------------------------------------------------- */

/* What backward() was given, where it was one thing; borrowed. */
static PyObject *alone(PyObject *given)
{
    if (PyTuple_Check(given) && PyTuple_Size(given) == 1) {
        return PyTuple_GetItem(given, 0);
    }
    return PyList_Check(given) && PyList_Size(given) == 1 ? PyList_GetItem(given, 0) : given;
}

/* 1, 0, or -1: a tensor without axes, in host memory. */
static int is_scalar(PyObject *tensor)
{
    PyObject *axes = PyObject_CallMethodObjArgs(tensor, native_names.dim, NULL);
    long count = axes ? PyLong_AsLong(axes) : -1;
    Py_XDECREF(axes);
    if (count != 0) {
        return PyErr_Occurred() ? -1 : 0;
    }
    PyObject *here = PyObject_GetAttr(tensor, native_names.is_cpu);
    int status = here ? here == Py_True : -1;
    Py_XDECREF(here);
    return status;
}

/* 1: it is in `ret`; 0: only Python can tell; -1. */
static int item_of(PyObject *tensor, double *ret)
{
    int scalar = is_scalar(tensor);
    PyObject *value =
        scalar > 0 ? PyObject_CallMethodObjArgs(tensor, native_names.item, NULL) : NULL;
    int status = scalar;
    if (value) {
        status = PyFloat_Check(value);
        *ret = status ? PyFloat_AsDouble(value) : 0.0;
    } else if (scalar > 0) { /* one that cannot be read so */
        status = PyErr_ExceptionMatches(PyExc_Exception) ? 0 : -1;
        if (status == 0) {
            PyErr_Clear();
        }
    }
    Py_XDECREF(value);
    return status;
}

/* The same of anything. */
static int number_of(const struct native_context *context, PyObject *tensor, double *ret)
{
    if ((PyObject *)Py_TYPE(tensor) != context->tensor) {
        return 0;
    }
    int negative = native_asks(tensor, native_names.is_neg);
    int status = negative == 0 ? native_read_number(tensor, ret) : negative < 0 ? -1 : 0;
    return status == 0 ? item_of(tensor, ret) : status;
}

int native_loss_of(struct native_context *context, PyObject *tensors, PyObject *gradients,
                   PyObject **ret)
{
    double loss, gradient = 1.0;
    int told = PySet_Contains(native_get(context->events, EVENTS_TOLD), native_names.loss);
    *ret = NULL;
    if (told != 0 || !context->is_connected(context->handle)) {
        return told < 0 ? -1 : 1;
    }
    if (PyList_Size(native_get(context->scaler, SCALER_KEPT)) != 0) {
        return PyErr_Occurred() ? -1 : 0; /* it may be scaled */
    }
    int status = number_of(context, alone(tensors), &loss);
    if (status > 0 && gradients != Py_None && alone(gradients) != Py_None) {
        status = number_of(context, alone(gradients), &gradient);
    }
    if (status > 0 && gradient == 1.0) { /* else it is weighted */
        *ret = PyFloat_FromDouble(loss);
        status = *ret ? 1 : -1;
    }
    return status;
}

/* The batch that came last is the one that the pass is of. */
static int use_batch(PyObject *loader)
{
    PyObject *last = native_get(loader, LOADER_LAST);
    return last == Py_None ? 0 : native_put(loader, LOADER_USED, PySequence_Tuple(last));
}

int native_note_pass(struct native_context *context, PyObject *loss)
{
    PyObject *events = context->events;
    long passes = native_int(events, EVENTS_PASSES);
    if (PyErr_Occurred() || native_put_int(events, EVENTS_PASSES, passes + 1) < 0 ||
        use_batch(native_get(events, EVENTS_LOADER)) < 0) {
        return -1;
    }
    return loss ? PyList_Append(native_get(events, EVENTS_LOSSES), loss) : 0;
}

/* ---- learning rates -------------------------------------------------------------------------- */

/* The rate of a parameter group, new; NULL without an exception: only Python can tell. */
static PyObject *rate_of(PyObject *group)
{
    PyObject *rate =
        group && PyDict_Check(group) ? PyDict_GetItemWithError(group, native_names.lr) : NULL;
    return rate && (PyFloat_Check(rate) || PyLong_Check(rate)) ? PyNumber_Float(rate) : NULL;
}

static int note_rate(PyObject *numbers, Py_ssize_t index, PyObject *rate)
{
    PyObject *name = index ? PyUnicode_FromFormat("lr_%zd", index) : Py_NewRef(native_names.lr);
    int status = name ? PyDict_SetItem(numbers, name, rate) : -1;
    Py_XDECREF(name);
    return status;
}

/* 1, 0, or -1: all of them are noted. */
static int note_all(PyObject *numbers, PyObject *groups)
{
    Py_ssize_t count = PyList_Check(groups) ? PyList_Size(groups) : 0;
    int status = count > 0;
    for (Py_ssize_t i = 0; status > 0 && i < count && i < MAX_GROUPS; i++) {
        PyObject *rate = rate_of(PyList_GetItem(groups, i));
        status = rate ? 1 : PyErr_Occurred() ? -1 : 0;
        if (rate && note_rate(numbers, i, rate) < 0) {
            status = -1;
        }
        Py_XDECREF(rate);
    }
    return status;
}

int native_note_rates(struct native_context *context, PyObject *optimizer)
{
    if (!context->is_connected(context->handle)) {
        return 0;
    }
    PyObject *groups = PyObject_GetAttr(optimizer, native_names.param_groups);
    int status = groups ? note_all(native_get(context->events, EVENTS_NUMBERS), groups) : -1;
    Py_XDECREF(groups);
    if (status == 0) {
        status = native_call(context->events, native_names.optimizer_begins, optimizer, NULL, NULL);
    }
    return status < 0 ? -1 : 0;
}

/* ---- telling --------------------------------------------------------------------------------- */

int native_note_stepped(struct native_context *context)
{
    PyObject *events = context->events, *numbers = native_get(events, EVENTS_NUMBERS);
    PyObject *losses = Py_NewRef(native_get(events, EVENTS_LOSSES));
    long passes = native_int(events, EVENTS_PASSES);
    bool several = native_is_true(events, EVENTS_SEVERAL) || passes > 1;
    PyObject *count = PyLong_FromLong(passes);
    bool ok = count && !PyErr_Occurred();
    if (ok && PyList_Size(losses) > 0) {
        ok = PyDict_SetItem(numbers, native_names.loss, losses) == 0 &&
             native_put(events, EVENTS_LOSSES, PyList_New(0)) == 0;
    }
    if (ok && several) {
        native_set(events, EVENTS_SEVERAL, Py_True);
        ok = PyDict_SetItem(numbers, native_names.micro_batch, count) == 0;
    }
    ok = ok && native_put_int(events, EVENTS_PASSES, 0) == 0;
    Py_XDECREF(count);
    Py_DECREF(losses);
    return ok ? 0 : -1;
}

/* As float() has it; of a list its sum. */
static double value_of(PyObject *number)
{
    if (!PyList_Check(number)) {
        PyObject *value = PyNumber_Float(number);
        double found = value ? PyFloat_AsDouble(value) : 0.0;
        Py_XDECREF(value);
        return found;
    }
    double sum = 0.0;
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < PyList_Size(number); i++) {
        PyObject *item = PyList_GetItem(number, i);
        sum += PyList_Check(item) ? 0.0 : value_of(item);
    }
    return sum;
}

static int tell_number(struct native_context *context, PyObject *name, PyObject *number)
{
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    PyObject *bytes = NULL;
    if (!text) { /* there is no UTF-8 for it */
        PyErr_Clear();
        bytes = PyUnicode_AsEncodedString(name, "utf-8", "backslashreplace");
        text = bytes ? PyBytes_AsString(bytes) : NULL;
    }
    double value = text ? value_of(number) : 0.0;
    if (!PyErr_Occurred()) {
        context->scalar(context->handle, text, value);
    }
    Py_XDECREF(bytes);
    return PyErr_Occurred() ? -1 : 0;
}

/* Which epoch and batch it was, where there is a DataLoader. */
static int tell_batch(struct native_context *context, PyObject *numbers)
{
    PyObject *used = native_get(native_get(context->events, EVENTS_LOADER), LOADER_USED);
    if (!PyTuple_Check(used) || PyTuple_Size(used) != 2) {
        return 0;
    }
    bool ok = PyDict_SetItem(numbers, native_names.epoch, PyTuple_GetItem(used, 0)) == 0 &&
              PyDict_SetItem(numbers, native_names.batch, PyTuple_GetItem(used, 1)) == 0;
    return ok ? 0 : -1;
}

int native_tell_numbers(struct native_context *context, bool told)
{
    PyObject *numbers = Py_NewRef(native_get(context->events, EVENTS_NUMBERS)), *name, *number;
    int status = native_put(context->events, EVENTS_NUMBERS, PyDict_New());
    Py_ssize_t place = 0;
    if (status == 0 && told) {
        status = tell_batch(context, numbers);
    }
    while (status == 0 && told && PyDict_Next(numbers, &place, &name, &number)) {
        status = tell_number(context, name, number);
    }
    Py_DECREF(numbers);
    return status;
}
