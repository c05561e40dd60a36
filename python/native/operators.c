// SPDX-License-Identifier: MIT
/* The base of ops.OperatorMode: the call of an operator, and that its node has run. */
#include "native.h"

#include <stddef.h>

struct operators {
    PyObject_HEAD struct native_context *context; /* NULL: everything goes to Python */
    PyObject *known; /* of Python: function -> ops._Operator, or None */
};

/* A call as torch hands it over; borrowed. */
struct call {
    struct operators *mode;
    PyObject *function, *types, *args;
    PyObject *keywords; /* Py_None: none */
    bool writes;        /* into its first argument: the operator always does */
    bool overwrites;    /* the same, or as it was told to (inplace=True) */
};

static PyObject *intercept(const struct call *call)
{
    return PyObject_CallMethodObjArgs((PyObject *)call->mode, native_names.intercept,
                                      call->function, call->types, call->args, call->keywords,
                                      NULL);
}

static PyObject *run(const struct call *call)
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

/* 1, 0, or -1: the keyword is there, and neither None nor False. */
static int is_given(PyObject *keywords, PyObject *name)
{
    PyObject *value = PyDict_GetItemWithError(keywords, name);
    if (!value || value == Py_None || value == Py_False) {
        return PyErr_Occurred() ? -1 : 0;
    }
    return 1;
}

/* 1, 0, or -1: how it is called is nothing for Python. Finds out whether it writes. */
static int is_plain_call(struct call *call, PyObject *operation)
{
    int usual = native_is(operation, OPERATOR_USUAL);
    int writes = usual == 0 ? native_is(operation, OPERATOR_IN_PLACE) : 0;
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
    /* What is held of the values before must be told before they are gone. */
    int held = call->overwrites ? native_is(call->mode->context->telling, TELLING_PENDING) : 0;
    return held < 0 ? -1 : !held;
}

/* 1, 0, or -1: see native_is_watched_closely. */
static int is_watched_closely(const struct native_context *context)
{
    int close = native_is_watched_closely(context);
    if (close == 0) {
        close = native_is(context->agent, AGENT_SHARDS);
    }
    if (close != 0) {
        return close;
    }
    PyObject *tracing = PyObject_CallNoArgs(context->tracing);
    Py_XDECREF(tracing);
    return tracing ? tracing != Py_None : -1;
}

/* What is known of a function; NULL, without an exception: nothing yet. */
static PyObject *operator_of(const struct operators *mode, PyObject *function)
{
    PyObject *operation = PyDict_GetItemWithError(mode->known, function);
    if (!operation) {
        PyErr_Clear(); /* one that cannot be a key */
    }
    return Py_XNewRef(operation);
}

/* 1, 0, or -1: see the title. */
static int is_usual(struct call *call, PyObject *operation)
{
    int usual = is_plain_call(call, operation);
    int close = usual > 0 ? is_watched_closely(call->mode->context) : 1;
    return usual < 0 || close < 0 ? -1 : usual && !close;
}

/* ---- when it has run ------------------------------------------------------------------------- */

/* 1, 0, or -1: it is part of a module's forward pass. */
static int is_forward(const struct native_context *context)
{
    int forward = native_is(context->steps, STEPS_FORWARD);
    int other = forward > 0 ? native_is(context->steps, STEPS_RUNNING) : 1;
    if (other == 0) {
        other = native_is(context->agent, AGENT_IN_BACKWARD);
    }
    return forward < 0 || other < 0
               ? -1
               : !other && native_get(context->scaler, SCALER_STEPPING) == Py_None;
}

/* The node, when all is known of it; NULL without an exception: it is for Python. */
static PyObject *node_of(struct native_context *context, PyObject *operation)
{
    PyObject *node = NULL;
    PyObject *path = PyObject_GetAttr(context->local, native_names.path);
    PyObject *site = path ? PyObject_GetAttr(context->local, native_names.site) : NULL;
    if (!site) {
        PyErr_Clear(); /* no module was called in this thread */
    } else if (PyUnicode_Check(path) && PyUnicode_GetLength(path) > 0) {
        PyObject *key = PyTuple_Pack(3, path, native_get(operation, OPERATOR_NAME), site);
        node = key ? native_next_known(context, key, true) : NULL;
        Py_XDECREF(key);
    }
    Py_XDECREF(site);
    Py_XDECREF(path);
    return node;
}

/* What it gave, a tuple of plain tensors; NULL without an exception: it is for Python. */
static PyObject *outputs_of(const struct native_context *context, PyObject *result)
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

/* 1, 0, or -1: it counts up, see telling._is_counter. */
static int is_counter(PyObject *operation, PyObject *tensor)
{
    int counts = native_is(operation, OPERATOR_COUNTS);
    PyObject *rank = counts > 0 ? PyObject_CallMethodObjArgs(tensor, native_names.dim, NULL) : NULL;
    if (!rank) {
        return counts > 0 ? -1 : counts;
    }
    long axes = PyLong_AsLong(rank);
    Py_DECREF(rank);
    int real = axes == 0 ? native_asks(tensor, native_names.is_floating_point) : axes < 0 ? -1 : 1;
    int other = real == 0 ? native_asks(tensor, native_names.is_complex) : real;
    return other < 0 ? -1 : !other;
}

/* The origins of the outputs, which have the node's mark from now on. */
static PyObject *records_of(const struct call *call, PyObject *node, PyObject *outputs)
{
    struct native_context *context = call->mode->context;
    Py_ssize_t count = PyTuple_Size(outputs);
    PyObject *records = PyTuple_New(count);
    for (Py_ssize_t slot = 0; records && slot < count; slot++) {
        PyObject *tensor = PyTuple_GetItem(outputs, slot);
        PyObject *origin = call->writes ? native_wrote(context, tensor, node, (long)slot)
                                        : native_produced(context, tensor, node, (long)slot);
        if (!origin || native_mark(tensor, node) < 0) {
            Py_XDECREF(origin);
            Py_CLEAR(records);
        } else {
            PyTuple_SetItem(records, slot, origin); /* takes it over */
        }
    }
    return records;
}

static int tell(const struct call *call, PyObject *node, PyObject *outputs)
{
    PyObject *records = records_of(call, node, outputs);
    /* What is written over is no other look at itself. */
    PyObject *before = call->overwrites ? PyTuple_New(0) : Py_NewRef(call->args);
    int status =
        records && before ? native_ran(call->mode->context, node, outputs, records, before) : -1;
    Py_XDECREF(before);
    Py_XDECREF(records);
    return status;
}

/* Its node's edges are those of this call. */
static int learn(const struct call *call, PyObject *node, PyObject *outputs)
{
    struct native_context *context = call->mode->context;
    int same = native_reads_same(context, node, call->args, call->keywords);
    if (same != 0) {
        return same < 0 ? -1 : 0;
    }
    PyObject *done = PyObject_CallMethodObjArgs(context->telling, native_names.reads, node,
                                                call->args, call->keywords, outputs, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* 1: told; 0: it is for Python; -1. */
static int tell_outputs(const struct call *call, PyObject *operation, PyObject *outputs)
{
    int counter = call->writes ? is_counter(operation, PyTuple_GetItem(outputs, 0)) : 0;
    if (counter != 0) {
        return counter;
    }
    PyObject *node = node_of(call->mode->context, operation);
    if (!node) {
        return PyErr_Occurred() ? -1 : 0;
    }
    int status = learn(call, node, outputs) < 0 ? -1 : tell(call, node, outputs);
    Py_DECREF(node);
    return status < 0 ? -1 : 1;
}

/* The same of what it gave. */
static int tell_known(const struct call *call, PyObject *operation, PyObject *result)
{
    int forward = is_forward(call->mode->context);
    PyObject *outputs = forward > 0 ? outputs_of(call->mode->context, result) : NULL;
    if (!outputs) {
        return PyErr_Occurred() ? -1 : 0;
    }
    int status = tell_outputs(call, operation, outputs);
    Py_DECREF(outputs);
    return status;
}

static void tell_python(const struct call *call, PyObject *operation, PyObject *result)
{
    struct native_context *context = call->mode->context;
    PyObject *done = PyObject_CallMethodObjArgs(context->telling, native_names.operator_ran,
                                                operation, call->args, call->keywords, result,
                                                call->writes ? Py_True : Py_False, NULL);
    Py_XDECREF(done);
}

/* The operator has raised an exception, which goes on when it was told of. */
static void tell_raised(const struct call *call, PyObject *operation)
{
    struct native_context *context = call->mode->context;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback) {
        PyException_SetTraceback(value, traceback);
    }
    if (PyErr_GivenExceptionMatches(type, PyExc_Exception)) {
        PyObject *done =
            PyObject_CallMethodObjArgs(context->telling, native_names.operator_raised, operation,
                                       call->args, call->keywords, value, NULL);
        Py_XDECREF(done);
        PyErr_Clear();
    }
    PyErr_Restore(type, value, traceback);
}

static PyObject *run_usual(const struct call *call, PyObject *operation)
{
    struct native_context *context = call->mode->context;
    PyObject *result = run(call);
    if (!result) {
        tell_raised(call, operation);
        return NULL;
    }
    int told = native_is(context->agent, AGENT_DEAD) == 0 ? tell_known(call, operation, result) : 1;
    if (told == 0) {
        tell_python(call, operation, result);
    }
    if (PyErr_Occurred() && native_fault(context) < 0) {
        Py_CLEAR(result);
    }
    return result;
}

/* What is known of the function; NULL: it is for Python, or with an exception of our own. */
static PyObject *look_up(const struct call *call)
{
    const struct native_context *context = call->mode->context;
    bool plain =
        PyTuple_Check(call->args) && (call->keywords == Py_None || PyDict_Check(call->keywords));
    int looking =
        context && context->handle && plain ? native_is(context->agent, AGENT_LOOKING) : 0;
    return looking > 0 ? operator_of(call->mode, call->function) : NULL;
}

static PyObject *run_known(struct call *call, PyObject *operation)
{
    int usual = is_usual(call, operation);
    if (usual < 0 && native_fault(call->mode->context) < 0) {
        return NULL;
    }
    return usual > 0 ? run_usual(call, operation) : intercept(call);
}

/* ---- the type -------------------------------------------------------------------------------- */

/* As TorchFunctionMode has it: func, types, args=(), kwargs=None. */
static PyObject *torch_function(PyObject *self, PyObject *given)
{
    struct call call = {.mode = (struct operators *)self, .keywords = Py_None};
    PyObject *none = NULL;
    if (!PyArg_ParseTuple(given, "OO|OO:__torch_function__", &call.function, &call.types,
                          &call.args, &call.keywords)) {
        return NULL;
    }
    if (!call.args && !(call.args = none = PyTuple_New(0))) {
        return NULL;
    }
    PyObject *operation = look_up(&call);
    PyObject *result;
    if (!operation) {
        result = PyErr_Occurred() ? NULL : intercept(&call);
    } else {
        result = operation == Py_None ? run(&call) : run_known(&call, operation);
    }
    Py_XDECREF(operation);
    Py_XDECREF(none);
    return result;
}

static PyObject *use(PyObject *self, PyObject *context)
{
    struct operators *mode = (struct operators *)self;
    if (!PyObject_TypeCheck(context, native_context_type)) {
        PyErr_SetString(PyExc_TypeError, "use() takes a Context");
        return NULL;
    }
    PyObject *known = PyObject_GetAttr(self, native_names.operators);
    if (!known || !PyDict_Check(known)) {
        Py_XDECREF(known);
        PyErr_SetString(PyExc_TypeError, "the mode needs a dict `operators`");
        return NULL;
    }
    native_swap(&mode->known, known);
    native_swap((PyObject **)&mode->context, Py_NewRef(context));
    return Py_NewRef(Py_None);
}

static const size_t references[] = {offsetof(struct operators, context),
                                    offsetof(struct operators, known), 0};

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    return native_visit(self, references, visit, arg);
}

static int clear(PyObject *self)
{
    return native_drop(self, references);
}

static void dealloc(PyObject *self)
{
    native_dealloc(self, clear);
}

static PyMethodDef methods[] = {
    {"__torch_function__", torch_function, METH_VARARGS, "calls an operator and tells of it"},
    {"use", use, METH_O, "use(context): known operators take the short way from now on"},
    {NULL, NULL, 0, NULL},
};

static char doc[] = "The base of a TorchFunctionMode that has `intercept` and `operators`.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},         {Py_tp_traverse, traverse}, {Py_tp_clear, clear},
    {Py_tp_dealloc, dealloc}, {Py_tp_methods, methods},   {0, NULL},
};

PyType_Spec native_operators_spec = {
    .name = "gradb._native.Operators",
    .basicsize = sizeof(struct operators),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
