// SPDX-License-Identifier: MIT
/* The base of ops.OperatorMode: calls an operator, and reports that its node has run. */
#include "operators.h"

#include <stddef.h>

#include "clock.h"
#include "context.h"
#include "functions.h"
#include "graph.h"
#include "inputs.h"
#include "marks.h"
#include "module.h"
#include "names.h"
#include "objects.h"
#include "records.h"
#include "report.h"
#include "site.h"
#include "tensors.h"

static PyObject *call_intercept(const struct native_call *call)
{
    return PyObject_CallMethodObjArgs((PyObject *)call->mode, native_names.intercept,
                                      call->function, call->types, call->args, call->keywords,
                                      NULL);
}

static PyObject *run_operator(const struct native_call *call)
{
    const struct native_context *context = call->mode->context;
    if (context && context->stand_in != Py_None) {
        return PyObject_CallFunctionObjArgs(context->stand_in, call->function, call->args,
                                            call->keywords, NULL);
    }
    return PyObject_Call(call->function, call->args,
                         call->keywords == Py_None ? NULL : call->keywords);
}

/* ---- whether it is a usual call -------------------------------------------------------------- */

/* The keyword is given, and is neither None nor False. */
static int is_given(PyObject *keywords, PyObject *name)
{
    PyObject *value = PyDict_GetItemWithError(keywords, name);
    if (!value || value == Py_None || value == Py_False) {
        return PyErr_Occurred() ? -1 : 0;
    }
    return 1;
}

/* The call needs no Python. Sets call->writes and call->overwrites. */
static int is_plain_call(struct native_call *call, PyObject *operation)
{
    int usual = native_truth(operation, OPERATOR_USUAL);
    int writes = usual == 0 ? native_truth(operation, OPERATOR_IN_PLACE) : 0;
    bool named = call->keywords != Py_None && PyDict_Size(call->keywords) > 0;
    int out = named ? is_given(call->keywords, native_names.out) : 0;
    int inplace = named ? is_given(call->keywords, native_names.inplace) : 0;
    if (usual < 0 || writes < 0 || out < 0 || inplace < 0) {
        return -1;
    }
    call->writes = writes;
    call->overwrites = writes || inplace;
    if (out || !(usual || writes)) {
        return 0;
    }
    /* Values that are held back must be reported before they are overwritten. */
    int held = call->overwrites ? native_truth(call->mode->context->reporter, REPORTER_PENDING) : 0;
    return held < 0 ? -1 : !held;
}

/* See native_is_watched_closely. */
static int is_watched_closely(const struct native_context *context)
{
    int close = native_is_watched_closely(context);
    if (close == 0) {
        close = native_truth(context->agent, AGENT_SHARDS);
    }
    if (close != 0) {
        return close;
    }
    PyObject *tracing = PyObject_CallNoArgs(context->tracing);
    Py_XDECREF(tracing);
    return tracing ? tracing != Py_None : -1;
}

/* What is known of a function; NULL without an exception: nothing yet. */
static PyObject *find_operator(const struct native_operators *mode, PyObject *function)
{
    PyObject *operation = PyDict_GetItemWithError(mode->known, function);
    if (!operation) {
        PyErr_Clear(); /* the function is not hashable */
    }
    return Py_XNewRef(operation);
}

int native_is_usual_call(struct native_call *call, PyObject *operation)
{
    int usual = is_plain_call(call, operation);
    int close = usual > 0 ? is_watched_closely(call->mode->context) : 1;
    return usual < 0 || close < 0 ? -1 : usual && !close;
}

/* ---- when it has run ------------------------------------------------------------------------- */

/* It is part of a module's forward pass. */
static int is_forward(const struct native_context *context)
{
    int forward = native_truth(context->steps, STEPS_FORWARD);
    int other = forward > 0 ? native_truth(context->steps, STEPS_RUNNING) : 1;
    if (other == 0) {
        other = native_truth(context->agent, AGENT_IN_BACKWARD);
    }
    return forward < 0 || other < 0
               ? -1
               : !other && native_get(context->scaler, SCALER_STEPPING) == Py_None;
}

/* The key of the operator's family in the running module; NULL without an exception: not known. */
static PyObject *find_inner_key(struct native_context *context, PyObject *path, PyObject *name)
{
    PyObject *site = PyObject_GetAttr(context->local, native_names.site);
    if (site == Py_None) {
        Py_DECREF(site);
        site = native_find_site(context);
    }
    PyObject *key = site ? PyTuple_Pack(3, path, name, site) : NULL;
    Py_XDECREF(site);
    return key;
}

/* The same wherever the operator runs. writes: to its first argument. */
static PyObject *find_key(struct native_context *context, PyObject *name, bool writes)
{
    PyObject *path = PyObject_GetAttr(context->local, native_names.path);
    if (!path || !PyUnicode_Check(path)) {
        PyErr_Clear(); /* no module has been called in this thread */
        Py_XDECREF(path);
        return NULL;
    }
    PyObject *key = PyUnicode_GetLength(path) > 0 ? find_inner_key(context, path, name)
                    : writes                      ? NULL
                                                  : native_outer_key(context, name);
    Py_DECREF(path);
    return key;
}

/* The node, when everything about it is known; NULL without an exception: it is for Python. */
static PyObject *find_node(struct native_context *context, PyObject *operation, bool writes)
{
    PyObject *key = find_key(context, native_get(operation, OPERATOR_NAME), writes);
    PyObject *node = key ? native_next_known(context, key, true) : NULL;
    Py_XDECREF(key);
    return node;
}

/* What the operator returned, as a tuple of plain tensors; NULL without an exception: it is for
 * Python. */
static PyObject *collect_outputs(const struct native_context *context, PyObject *result)
{
    if ((PyObject *)Py_TYPE(result) == context->tensor) {
        return PyTuple_Pack(1, result);
    }
    if (!PyTuple_Check(result) && !PyList_Check(result)) {
        return NULL;
    }
    PyObject *outputs = PySequence_Tuple(result);
    Py_ssize_t count = outputs ? PyTuple_Size(outputs) : 0;
    bool plain = count > 0;
    for (Py_ssize_t slot = 0; plain && slot < count; slot++) {
        plain = (PyObject *)Py_TYPE(PyTuple_GetItem(outputs, slot)) == context->tensor;
    }
    if (!plain) {
        Py_CLEAR(outputs);
    }
    return outputs;
}

/* It counts up, see reporter._is_counter. */
static int is_counter(PyObject *operation, PyObject *tensor)
{
    int counts = native_truth(operation, OPERATOR_COUNTS);
    PyObject *rank = counts > 0 ? PyObject_CallMethodObjArgs(tensor, native_names.dim, NULL) : NULL;
    if (!rank) {
        return counts > 0 ? -1 : counts;
    }
    long axes = PyLong_AsLong(rank);
    Py_DECREF(rank);
    int real = axes == 0 ? native_ask(tensor, native_names.is_floating_point) : axes < 0 ? -1 : 1;
    int other = real == 0 ? native_ask(tensor, native_names.is_complex) : real;
    return other < 0 ? -1 : !other;
}

/* The origins of the outputs, whose grad_fns get the node's mark. */
static PyObject *note_outputs(const struct native_call *call, PyObject *node, PyObject *outputs)
{
    struct native_context *context = call->mode->context;
    Py_ssize_t count = PyTuple_Size(outputs);
    PyObject *records = PyTuple_New(count);
    for (Py_ssize_t slot = 0; records && slot < count; slot++) {
        PyObject *tensor = PyTuple_GetItem(outputs, slot);
        PyObject *origin = call->writes ? native_note_written(context, tensor, node, (long)slot)
                                        : native_note_output(context, tensor, node, (long)slot);
        if (!origin || native_mark(context, tensor, node) < 0) {
            Py_XDECREF(origin);
            Py_CLEAR(records);
        } else {
            PyTuple_SetItem(records, slot, origin); /* steals the reference */
        }
    }
    return records;
}

static int report_outputs(const struct native_call *call, PyObject *node, PyObject *outputs)
{
    PyObject *records = note_outputs(call, node, outputs);
    /* An overwritten value is not another view of itself. */
    PyObject *before = call->overwrites ? PyTuple_New(0) : Py_NewRef(call->args);
    int status =
        records && before ? native_ran(call->mode->context, node, outputs, records, before) : -1;
    Py_XDECREF(before);
    Py_XDECREF(records);
    return status;
}

/* Updates the node's edges to those of this call. */
static int learn_inputs(const struct native_call *call, PyObject *node, PyObject *outputs)
{
    struct native_context *context = call->mode->context;
    int same = native_reads_same(context, node, call->args, call->keywords);
    if (same != 0) {
        return same < 0 ? -1 : 0;
    }
    PyObject *done = PyObject_CallMethodObjArgs(context->reporter, native_names.reads, node,
                                                call->args, call->keywords, outputs, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* 1: reported; 0: it is for Python; -1. */
static int report_node(const struct native_call *call, PyObject *operation, PyObject *outputs)
{
    int counter = call->writes ? is_counter(operation, PyTuple_GetItem(outputs, 0)) : 0;
    if (counter != 0) {
        return counter;
    }
    PyObject *node = find_node(call->mode->context, operation, call->writes);
    if (!node) {
        return PyErr_Occurred() ? -1 : 0;
    }
    int status = learn_inputs(call, node, outputs) < 0 ? -1 : report_outputs(call, node, outputs);
    Py_DECREF(node);
    return status < 0 ? -1 : 1;
}

/* The same for what the operator returned. */
static int report_known(const struct native_call *call, PyObject *operation, PyObject *result)
{
    int forward = is_forward(call->mode->context);
    PyObject *outputs = forward > 0 ? collect_outputs(call->mode->context, result) : NULL;
    if (!outputs) {
        return PyErr_Occurred() ? -1 : 0;
    }
    int status = report_node(call, operation, outputs);
    Py_DECREF(outputs);
    return status;
}

static void report_to_python(const struct native_call *call, PyObject *operation, PyObject *result)
{
    struct native_context *context = call->mode->context;
    PyObject *done = PyObject_CallMethodObjArgs(context->reporter, native_names.operator_ran,
                                                operation, call->args, call->keywords, result,
                                                call->writes ? Py_True : Py_False, NULL);
    Py_XDECREF(done);
}

/* The operator has raised an exception, which propagates after it was reported. */
static void report_raised(const struct native_call *call, PyObject *operation)
{
    struct native_context *context = call->mode->context;
    struct native_error error = native_take_error();
    native_normalize_error(&error);
    if (PyErr_GivenExceptionMatches(error.type, PyExc_Exception)) {
        PyObject *done =
            PyObject_CallMethodObjArgs(context->reporter, native_names.operator_raised, operation,
                                       call->args, call->keywords, error.value, NULL);
        Py_XDECREF(done);
        PyErr_Clear();
    }
    native_restore_error(error);
}

PyObject *native_run_usual(const struct native_call *call, PyObject *operation)
{
    struct native_context *context = call->mode->context;
    bool measured = context->clock->on;
    double began = measured ? native_read_clock(context->clock) : 0;
    PyObject *result = call->run(call);
    if (!result) {
        report_raised(call, operation);
        return NULL;
    }
    if (result == Py_NotImplemented) { /* by `+` and the like: the other operand is asked */
        return result;
    }
    if (measured) {
        native_took(context->clock, began);
    }
    int told =
        native_truth(context->agent, AGENT_DEAD) == 0 ? report_known(call, operation, result) : 1;
    if (told == 0) {
        report_to_python(call, operation, result);
    }
    if (PyErr_Occurred() && native_report_fault(context) < 0) {
        Py_CLEAR(result);
    }
    return result;
}

/* What is known of the function; NULL: it is for Python, or with an exception of our own. */
static PyObject *look_up_operator(const struct native_call *call)
{
    const struct native_context *context = call->mode->context;
    bool plain =
        PyTuple_Check(call->args) && (call->keywords == Py_None || PyDict_Check(call->keywords));
    int watching =
        context && context->handle && plain ? native_truth(context->agent, AGENT_WATCHING_NOW) : 0;
    return watching > 0 ? find_operator(call->mode, call->function) : NULL;
}

static PyObject *run_known(struct native_call *call, PyObject *operation)
{
    int usual = native_is_usual_call(call, operation);
    if (usual < 0 && native_report_fault(call->mode->context) < 0) {
        return NULL;
    }
    if (usual > 0) {
        native_note_function(call, operation);
        return native_run_usual(call, operation);
    }
    return call_intercept(call);
}

/* ---- the type -------------------------------------------------------------------------------- */

/* Like TorchFunctionMode: func, types, args=(), kwargs=None. */
static PyObject *intercept_function(PyObject *self, PyObject *given)
{
    struct native_call call = {
        .mode = (struct native_operators *)self, .keywords = Py_None, .run = run_operator};
    PyObject *none = NULL;
    if (!PyArg_ParseTuple(given, "OO|OO:__torch_function__", &call.function, &call.types,
                          &call.args, &call.keywords)) {
        return NULL;
    }
    if (!call.args && !(call.args = none = PyTuple_New(0))) {
        return NULL;
    }
    PyObject *operation = look_up_operator(&call);
    PyObject *result;
    if (!operation) {
        result = PyErr_Occurred() ? NULL : call_intercept(&call);
    } else {
        result = operation == Py_None ? run_operator(&call) : run_known(&call, operation);
    }
    Py_XDECREF(operation);
    Py_XDECREF(none);
    return result;
}

static PyObject *use_context(PyObject *self, PyObject *context)
{
    struct native_operators *mode = (struct native_operators *)self;
    if (!PyObject_TypeCheck(context, native_context_type)) {
        PyErr_SetString(PyExc_TypeError, "use() takes a Context");
        return NULL;
    }
    PyObject *known = PyObject_GetAttr(self, native_names.operators);
    if (!known || !PyDict_Check(known)) {
        Py_XDECREF(known);
        PyErr_SetString(PyExc_TypeError, "the mode needs a dict named `operators`");
        return NULL;
    }
    native_swap(&mode->known, known);
    native_swap((PyObject **)&mode->context, Py_NewRef(context));
    return Py_NewRef(Py_None);
}

NATIVE_COLLECTED(offsetof(struct native_operators, context),
                 offsetof(struct native_operators, known))

static PyMethodDef methods[] = {
    {"__torch_function__", intercept_function, METH_VARARGS, "calls an operator and reports it"},
    {"use", use_context, METH_O, "use(context): from now on known operators take the short path"},
    {NULL, NULL, 0, NULL},
};

static char doc[] = "The base of a TorchFunctionMode that has `intercept` and `operators`.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_traverse, visit_references},
    {Py_tp_clear, drop_references},
    {Py_tp_dealloc, free_object},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec native_operators_spec = {
    .name = "gradb._native.Operators",
    .basicsize = sizeof(struct native_operators),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
