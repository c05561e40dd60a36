// SPDX-License-Identifier: MIT
/* The base of backward._Engine, which replaces PyTorch's engine: the passes of idle steps run
 * without Python, all others by `run`. */
#include "module.h"

#include "context.h"
#include "idle.h"
#include "names.h"
#include "objects.h"
#include "records.h"

struct engine {
    PyObject ob_base;
    struct native_context *context; /* NULL: everything goes to Python */
    PyObject *backward;             /* the backward.Backward, once it is known */
    PyObject *run;                  /* run_backward of PyTorch's engine */
    double most;                    /* seconds; a pass that takes longer is left to Python */
};

/* The pass has raised an exception, which propagates. It is reported to a debugger that has begun
 * to watch during the pass. */
static void report_raised(const struct engine *engine)
{
    if (!native_is_true(engine->context->agent, AGENT_WATCHING_NOW)) {
        return;
    }
    struct native_error error = native_take_error();
    PyErr_NormalizeException(&error.type, &error.value, &error.traceback);
    int status = PyErr_GivenExceptionMatches(error.type, PyExc_Exception)
                     ? native_call(engine->backward, native_names.raised, error.value, NULL, NULL)
                     : 0;
    if (status < 0 && native_report_fault(engine->context) < 0) { /* an interrupt replaces it */
        native_drop_error(error);
    } else {
        native_restore_error(error);
    }
}

/* Ends what native_begin_pass began, whether the pass raised or not. */
static int end_idle_pass(const struct engine *engine)
{
    struct native_error error = native_take_error();
    int status = native_end_pass(engine->context);
    if (status == 0) {
        status = native_call(engine->backward, native_names.ended, NULL, NULL, NULL);
    }
    if (status < 0 && native_report_fault(engine->context) == 0) {
        status = 0;
    }
    if (error.type && status >= 0) {
        native_restore_error(error);
        return -1;
    }
    native_drop_error(error); /* an interrupt replaces it */
    return status < 0 ? -1 : 0;
}

static PyObject *run_idle(const struct engine *engine, PyObject *args, PyObject *keywords)
{
    PyObject *result = PyObject_Call(engine->run, args, keywords);
    if (!result) {
        report_raised(engine);
    }
    if (end_idle_pass(engine) < 0) {
        Py_CLEAR(result);
    }
    return result;
}

/* 1: the pass belongs to an idle step and has begun; 0: it is for Python; -1. */
static int begin_idle_pass(const struct engine *engine, PyObject *args, PyObject *keywords)
{
    struct native_context *context = engine->context;
    if (!context || !keywords || PyTuple_Size(args) < 1 ||
        PyFloat_AsDouble(native_get(context->backward, BACKWARD_TOOK)) > engine->most) {
        PyErr_Clear();
        return 0;
    }
    PyObject *gradients = PyTuple_Size(args) > 1 ? PyTuple_GetItem(args, 1) : Py_None;
    int status = native_begin_pass(context, PyTuple_GetItem(args, 0), gradients, keywords);
    return status < 0 && native_report_fault(context) == 0 ? 0 : status;
}

static PyObject *run_pass(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct engine *engine = (struct engine *)self;
    int status = begin_idle_pass(engine, args, keywords);
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

static PyObject *use_context(PyObject *self, PyObject *args)
{
    struct engine *engine = (struct engine *)self;
    PyObject *context, *run, *backward;
    double most;
    if (!PyArg_ParseTuple(args, "O!Od:use", native_context_type, &context, &run, &most) ||
        !(backward = PyObject_GetAttr(self, native_names.backward))) {
        return NULL;
    }
    engine->most = most;
    native_swap(&engine->backward, backward);
    native_swap(&engine->run, Py_NewRef(run));
    native_swap((PyObject **)&engine->context, Py_NewRef(context));
    return Py_NewRef(Py_None);
}

NATIVE_COLLECTED(offsetof(struct engine, context), offsetof(struct engine, backward),
                 offsetof(struct engine, run))

static PyMethodDef methods[] = {
    {"run_backward", (PyCFunction)(void (*)(void))run_pass, METH_VARARGS | METH_KEYWORDS,
     "like run_backward of PyTorch's engine"},
    {"use", use_context, METH_VARARGS,
     "use(context, run_backward, seconds): passes that last longer do not take the short path"},
    {NULL, NULL, 0, NULL},
};

static char doc[] = "The base of backward._Engine, which has `run` and `backward`.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_traverse, visit_references},
    {Py_tp_clear, drop_references},
    {Py_tp_dealloc, free_object},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec native_engine_spec = {
    .name = "gradb._native.Engine",
    .basicsize = sizeof(struct engine),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
