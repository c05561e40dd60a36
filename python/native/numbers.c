// SPDX-License-Identifier: MIT
#include "numbers.h"

#include "names.h"
#include "objects.h"
#include "records.h"
#include "tensors.h"

/* ---- the loss -------------------------------------------------------------------------------- */

/* What backward() was given, unwrapped where it is one thing; borrowed. */
static PyObject *unwrap_single(PyObject *given)
{
    if (PyTuple_Check(given) && PyTuple_Size(given) == 1) {
        return PyTuple_GetItem(given, 0);
    }
    return PyList_Check(given) && PyList_Size(given) == 1 ? PyList_GetItem(given, 0) : given;
}

/* A tensor without axes, in host memory. */
static int is_scalar(PyObject *tensor)
{
    PyObject *axes = PyObject_CallMethodObjArgs(tensor, native_names.dim, NULL);
    long count = axes ? PyLong_AsLong(axes) : -1;
    Py_XDECREF(axes);
    if (count != 0) {
        return PyErr_Occurred() ? -1 : 0;
    }
    return native_take_truth(PyObject_GetAttr(tensor, native_names.is_cpu));
}

/* 1: *ret has the value; 0: only Python can tell; -1. */
static int read_item(PyObject *tensor, double *ret)
{
    int scalar = is_scalar(tensor);
    PyObject *value =
        scalar > 0 ? PyObject_CallMethodObjArgs(tensor, native_names.item, NULL) : NULL;
    int status = scalar;
    if (value) {
        status = PyFloat_Check(value);
        *ret = status ? PyFloat_AsDouble(value) : 0.0;
    } else if (scalar > 0) { /* it cannot be read this way */
        status = PyErr_ExceptionMatches(PyExc_Exception) ? 0 : -1;
        if (status == 0) {
            PyErr_Clear();
        }
    }
    Py_XDECREF(value);
    return status;
}

/* The same, seen by no mode of the program. */
static int read_item_apart(const struct native_context *context, PyObject *tensor, double *ret)
{
    PyObject *undispatched = PyObject_CallNoArgs(context->undispatched);
    PyObject *apart = undispatched ? native_enter_apart_for(context, tensor) : NULL;
    int status = apart ? read_item(tensor, ret) : -1;
    if (apart && native_leave_apart(apart) < 0) {
        status = -1;
    }
    Py_XDECREF(undispatched);
    return status;
}

/* The same for any object. */
static int read_number(const struct native_context *context, PyObject *tensor, double *ret)
{
    if ((PyObject *)Py_TYPE(tensor) != context->tensor) {
        return 0;
    }
    int status = native_read_number(tensor, ret);
    return status == 0 ? read_item_apart(context, tensor, ret) : status;
}

int native_find_loss(struct native_context *context, PyObject *tensors, PyObject *gradients,
                     struct native_number *ret)
{
    double loss, gradient = 1.0;
    PyObject *names = native_get(context->events, EVENTS_TOLD);
    int told = PySet_Size(names) > 0 ? PySet_Contains(names, native_names.loss) : 0;
    *ret = (struct native_number){.is_there = false};
    if (told != 0 || !context->idle_connected) {
        return told < 0 ? -1 : 1;
    }
    if (PyList_Size(native_get(context->scaler, SCALER_KEPT)) != 0) {
        return PyErr_Occurred() ? -1 : 0; /* the loss may be scaled */
    }
    int status = read_number(context, unwrap_single(tensors), &loss);
    if (status > 0 && gradients != Py_None && unwrap_single(gradients) != Py_None) {
        status = read_number(context, unwrap_single(gradients), &gradient);
    }
    if (status > 0 && gradient == 1.0) { /* any other gradient weights the loss */
        *ret = (struct native_number){.is_there = true, .value = loss};
    }
    return status;
}

static int append_loss(struct native_context *context, double loss)
{
    PyObject *number = PyFloat_FromDouble(loss);
    int status = number ? PyList_Append(native_get(context->events, EVENTS_LOSSES), number) : -1;
    Py_XDECREF(number);
    return status;
}

/* The waiting loss is the first of the step. */
static int flush_loss(struct native_context *context)
{
    if (!context->loss.is_there) {
        return 0;
    }
    context->loss.is_there = false;
    return append_loss(context, context->loss.value);
}

static int note_loss(struct native_context *context, double loss)
{
    if (context->loss.is_there || PyList_Size(native_get(context->events, EVENTS_LOSSES)) > 0) {
        return flush_loss(context) < 0 ? -1 : append_loss(context, loss);
    }
    context->loss = (struct native_number){.is_there = true, .value = loss};
    return 0;
}

/* The pass is of the batch that was fetched last. */
static int note_batch(PyObject *loader)
{
    PyObject *last = native_get(loader, LOADER_LAST);
    return last == Py_None ? 0 : native_set_new(loader, LOADER_USED, PySequence_Tuple(last));
}

int native_note_pass(struct native_context *context, struct native_number loss)
{
    PyObject *events = context->events;
    long passes = native_get_int(events, EVENTS_PASSES);
    if (PyErr_Occurred() || native_set_int(events, EVENTS_PASSES, passes + 1) < 0 ||
        note_batch(native_get(events, EVENTS_LOADER)) < 0) {
        return -1;
    }
    return loss.is_there ? note_loss(context, loss.value) : 0;
}

/* ---- learning rates -------------------------------------------------------------------------- */

/* The rate of a parameter group. 1: *ret has it; 0: only Python can tell; -1. */
static int read_rate(PyObject *group, double *ret)
{
    PyObject *rate =
        group && PyDict_Check(group) ? PyDict_GetItemWithError(group, native_names.lr) : NULL;
    if (!rate || (!PyFloat_Check(rate) && !PyLong_Check(rate))) {
        return PyErr_Occurred() ? -1 : 0;
    }
    *ret = PyFloat_AsDouble(rate);
    return PyErr_Occurred() ? -1 : 1;
}

/* 1: the rates of all groups wait now; 0; -1. */
static int note_all_rates(struct native_context *context, PyObject *groups)
{
    Py_ssize_t count = PyList_Check(groups) ? PyList_Size(groups) : 0;
    int status = count > 0;
    for (Py_ssize_t i = 0; status > 0 && i < count && i < NATIVE_MAX_GROUPS; i++) {
        status = read_rate(PyList_GetItem(groups, i), &context->rates[i]);
        context->rate_count = status > 0 ? (int)i + 1 : 0;
    }
    return status;
}

/* "lr", "lr_1", ... */
static const char *format_rate_name(int index, char room[16])
{
    if (index == 0) {
        return "lr";
    }
    PyOS_snprintf(room, 16, "lr_%d", index);
    return room;
}

static int flush_rates(struct native_context *context)
{
    PyObject *numbers = native_get(context->events, EVENTS_NUMBERS);
    int count = context->rate_count, status = 0;
    char name[16];
    context->rate_count = 0;
    for (int i = 0; status == 0 && i < count; i++) {
        PyObject *rate = PyFloat_FromDouble(context->rates[i]);
        status = rate ? PyDict_SetItemString(numbers, format_rate_name(i, name), rate) : -1;
        Py_XDECREF(rate);
    }
    return status;
}

int native_note_rates(struct native_context *context, PyObject *optimizer)
{
    if (!context->idle_connected) {
        return 0;
    }
    PyObject *groups = PyObject_GetAttr(optimizer, native_names.param_groups);
    int status = groups ? note_all_rates(context, groups) : -1;
    Py_XDECREF(groups);
    if (status == 0) {
        status = native_call(context->events, native_names.optimizer_begins, optimizer, NULL, NULL);
    }
    return status < 0 ? -1 : 0;
}

/* ---- reporting ---------------------------------------------------------------------------------
 */

PyObject *native_give_numbers(PyObject *self, PyObject *none)
{
    struct native_context *context = (struct native_context *)self;
    (void)none;
    return flush_loss(context) < 0 || flush_rates(context) < 0 ? NULL : Py_NewRef(Py_None);
}

/* The losses of a step of several passes. */
static int note_losses(PyObject *events)
{
    PyObject *losses = native_get(events, EVENTS_LOSSES);
    if (PyList_Size(losses) == 0) {
        return 0;
    }
    return PyDict_SetItem(native_get(events, EVENTS_NUMBERS), native_names.loss, losses) < 0
               ? -1
               : native_set_new(events, EVENTS_LOSSES, PyList_New(0));
}

int native_note_stepped(struct native_context *context)
{
    PyObject *events = context->events;
    PyObject *passes = Py_NewRef(native_get(events, EVENTS_PASSES));
    int status = note_losses(events);
    if (native_get_int(events, EVENTS_PASSES) > 1) {
        native_set(events, EVENTS_SEVERAL, Py_True);
    }
    if (status == 0 && native_is_true(events, EVENTS_SEVERAL)) {
        status =
            PyDict_SetItem(native_get(events, EVENTS_NUMBERS), native_names.micro_batch, passes);
    }
    native_set(events, EVENTS_PASSES, native_zero);
    Py_DECREF(passes);
    return status;
}

/* Whether it can be reported at once: a number in host memory, or a list of such. */
static bool is_plain(PyObject *number)
{
    bool plain = PyList_Check(number) || PyFloat_Check(number) || PyLong_Check(number);
    for (Py_ssize_t i = 0; plain && PyList_Check(number) && i < PyList_Size(number); i++) {
        PyObject *item = PyList_GetItem(number, i);
        plain = PyFloat_Check(item) || PyLong_Check(item);
    }
    return plain;
}

/* The sum of a list. */
static double sum_value(PyObject *number)
{
    if (!PyList_Check(number)) {
        return PyFloat_AsDouble(number);
    }
    double sum = 0.0;
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < PyList_Size(number); i++) {
        sum += PyFloat_AsDouble(PyList_GetItem(number, i));
    }
    return sum;
}

static int report_number(struct native_context *context, PyObject *name, PyObject *number)
{
    if (!is_plain(number)) {
        return native_call(context->events, native_names.put_off, name, number, NULL);
    }
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    PyObject *bytes = NULL;
    if (!text) { /* it has no UTF-8 form */
        PyErr_Clear();
        bytes = PyUnicode_AsEncodedString(name, "utf-8", "backslashreplace");
        text = bytes ? PyBytes_AsString(bytes) : NULL;
    }
    double value = text ? sum_value(number) : 0.0;
    if (!PyErr_Occurred()) {
        context->scalar(context->handle, text, value);
    }
    Py_XDECREF(bytes);
    return PyErr_Occurred() ? -1 : 0;
}

/* Those that were put off, as far as they have come from the device. */
static int report_late(struct native_context *context)
{
    PyObject *late = native_get(context->events, EVENTS_LATE);
    return PyList_Check(late) && PyList_Size(late) > 0
               ? native_call(context->events, native_names.give_late, NULL, NULL, NULL)
               : 0;
}

/* The epoch and batch, where there is a DataLoader. */
static int report_batch(struct native_context *context, PyObject *numbers)
{
    PyObject *used = native_get(native_get(context->events, EVENTS_LOADER), LOADER_USED);
    if (!PyTuple_Check(used) || PyTuple_Size(used) != 2) {
        return 0;
    }
    bool ok = PyDict_SetItem(numbers, native_names.epoch, PyTuple_GetItem(used, 0)) == 0 &&
              PyDict_SetItem(numbers, native_names.batch, PyTuple_GetItem(used, 1)) == 0;
    return ok ? 0 : -1;
}

/* Reports what waits, after which nothing waits. */
static void report_waiting(struct native_context *context, bool told)
{
    char name[16];
    for (int i = 0; told && i < context->rate_count; i++) {
        context->scalar(context->handle, format_rate_name(i, name), context->rates[i]);
    }
    if (told && context->loss.is_there) {
        context->scalar(context->handle, "loss", context->loss.value);
    }
    context->rate_count = 0;
    context->loss.is_there = false;
}

/* Reports them, after which nothing waits. */
static int report_noted(struct native_context *context, bool told)
{
    PyObject *numbers = native_get(context->events, EVENTS_NUMBERS), *name, *number;
    Py_ssize_t place = 0;
    if (PyDict_Size(numbers) == 0) {
        return 0;
    }
    Py_INCREF(numbers);
    int status = native_set_new(context->events, EVENTS_NUMBERS, PyDict_New());
    while (status == 0 && told && PyDict_Next(numbers, &place, &name, &number)) {
        status = report_number(context, name, number);
    }
    Py_DECREF(numbers);
    return status;
}

int native_report_numbers(struct native_context *context, bool told)
{
    report_waiting(context, told);
    int status = told ? report_batch(context, native_get(context->events, EVENTS_NUMBERS)) : 0;
    if (status == 0) {
        status = report_noted(context, told);
    }
    return status == 0 ? report_late(context) : status;
}
