// SPDX-License-Identifier: MIT
/* The base of backward._Engine, which stands in for torch's: a pass of an idle step runs without
 * Python around it, all others by `run`. */
#include "native.h"

struct engine {
    PyObject_HEAD struct native_context *context; /* NULL: everything goes to Python */
    PyObject *backward;                           /* of Python, where it is known */
    PyObject *run;                                /* run_backward of torch's engine */
    double most; /* seconds of a pass, of longer ones Python takes care */
};

/* The pass has raised an exception, which goes on. Who looks by now, which nobody did when it
 * began, is told. */
static void tell_raised(const struct engine *engine)
{
    PyObject *type, *value, *traceback;
    if (!native_is_true(engine->context->agent, AGENT_LOOKING)) {
        return;
    }
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    int status = PyErr_GivenExceptionMatches(type, PyExc_Exception)
                     ? native_call(engine->backward, native_names.raised, value, NULL, NULL)
                     : 0;
    if (status < 0 && native_fault(engine->context) < 0) { /* an interrupt takes its place */
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    } else {
        PyErr_Restore(type, value, traceback);
    }
}

/* Ends what native_pass_begins has begun, whether the pass has raised or not. */
static int end(const struct engine *engine)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    int status = native_pass_ends(engine->context);
    if (status == 0) {
        status = native_call(engine->backward, native_names.ended, NULL, NULL, NULL);
    }
    if (status < 0 && native_fault(engine->context) == 0) {
        status = 0;
    }
    if (type && status >= 0) {
        PyErr_Restore(type, value, traceback);
        return -1;
    }
    Py_XDECREF(type); /* an interrupt takes its place */
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return status < 0 ? -1 : 0;
}

static PyObject *run_idle(const struct engine *engine, PyObject *args, PyObject *keywords)
{
    PyObject *result = PyObject_Call(engine->run, args, keywords);
    if (!result) {
        tell_raised(engine);
    }
    if (end(engine) < 0) {
        Py_CLEAR(result);
    }
    return result;
}

/* 1: the pass is one of an idle step, and has begun; 0: it is for Python; -1. */
static int begin(const struct engine *engine, PyObject *args, PyObject *keywords)
{
    struct native_context *context = engine->context;
    if (!context || !keywords || PyTuple_Size(args) < 1 ||
        PyFloat_AsDouble(native_get(context->backward, BACKWARD_TOOK)) > engine->most) {
        PyErr_Clear();
        return 0;
    }
    PyObject *gradients = PyTuple_Size(args) > 1 ? PyTuple_GetItem(args, 1) : Py_None;
    int status = native_pass_begins(context, PyTuple_GetItem(args, 0), gradients, keywords);
    return status < 0 && native_fault(context) == 0 ? 0 : status;
}

static PyObject *run_backward(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct engine *engine = (struct engine *)self;
    int status = begin(engine, args, keywords);
    if (status < 0) {
        return NULL;
    }
    if (status > 0) {
        return run_idle(engine, args, keywords);
    }
    PyObject *run = PyObject_GetAttr(self, native_names.run);
    PyObject *result = run ? PyObject_Call(run, args, keywords) : NULL;
    Py_XDECREF(run);
    return result;
}

/* ---- the type -------------------------------------------------------------------------------- */

static PyObject *use(PyObject *self, PyObject *args)
{
    struct engine *engine = (struct engine *)self;
    PyObject *context, *run, *backward = PyObject_GetAttr(self, native_names.backward);
    double most;
    if (!backward || !PyArg_ParseTuple(args, "OOd:use", &context, &run, &most) ||
        !PyObject_TypeCheck(context, native_context_type)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "use() takes a Context first");
        }
        Py_XDECREF(backward);
        return NULL;
    }
    engine->most = most;
    native_swap(&engine->backward, backward);
    native_swap(&engine->run, Py_NewRef(run));
    native_swap((PyObject **)&engine->context, Py_NewRef(context));
    return Py_NewRef(Py_None);
}

static const size_t references[] = {offsetof(struct engine, context),
                                    offsetof(struct engine, backward), offsetof(struct engine, run),
                                    0};

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
    {"run_backward", (PyCFunction)(void (*)(void))run_backward, METH_VARARGS | METH_KEYWORDS,
     "as torch's engine has it"},
    {"use", use, METH_VARARGS,
     "use(context, run_backward, seconds): passes that took no longer take the short way"},
    {NULL, NULL, 0, NULL},
};

static char doc[] = "The base of backward._Engine, which has `run` and `backward`.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},         {Py_tp_traverse, traverse}, {Py_tp_clear, clear},
    {Py_tp_dealloc, dealloc}, {Py_tp_methods, methods},   {0, NULL},
};

PyType_Spec native_engine_spec = {
    .name = "gradb._native.Engine",
    .basicsize = sizeof(struct engine),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
