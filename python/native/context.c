// SPDX-License-Identifier: MIT
#include "native.h"

#include <stddef.h>
#include <stdint.h>

void native_swap(PyObject **place, PyObject *value)
{
    PyObject *before = *place;
    *place = value;
    Py_XDECREF(before);
}

int native_call(PyObject *object, PyObject *method, PyObject *a, PyObject *b, PyObject *c)
{
    PyObject *done = PyObject_CallMethodObjArgs(object, method, a, b, c, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

void native_dealloc(PyObject *object, inquiry clear)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    clear(object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

PyObject *native_enter_apart(const struct native_context *context)
{
    PyObject *apart = PyObject_CallNoArgs(context->apart);
    if (apart && native_call(apart, native_names.enter, NULL, NULL, NULL) < 0) {
        Py_CLEAR(apart);
    }
    return apart;
}

int native_leave_apart(PyObject *apart)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    int status = native_call(apart, native_names.exit, Py_None, Py_None, Py_None);
    Py_DECREF(apart);
    if (type) {
        PyErr_Restore(type, value, traceback);
        return -1;
    }
    return status;
}

int native_is_watched_closely(const struct native_context *context)
{
    PyObject *agent = context->agent;
    if (native_get(agent, AGENT_OVERFLOW) != Py_None ||
        native_get(agent, AGENT_DETAIL) != Py_None) {
        return 1;
    }
    return native_is(context->timing, TIMING_ON);
}

int native_fault(struct native_context *context)
{
    PyObject *type, *value, *traceback;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) {
        return -1; /* Ctrl-C, which is the program's wherever it comes */
    }
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && traceback) {
        PyException_SetTraceback(value, traceback);
    }
    if (!value || native_call(context->agent, native_names.fault, value, NULL, NULL) < 0) {
        PyErr_Clear(); /* nothing of ours goes into the training */
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return 0;
}

/* ---- the type --------------------------------------------------------------------------------
 */

static int take(PyObject **place, PyObject *value, enum native_kind kind)
{
    if (!native_is_a(value, kind)) {
        PyErr_SetString(PyExc_TypeError, "a part of the agent is not of its class");
        return -1;
    }
    native_swap(place, Py_NewRef(value));
    return 0;
}

/* What the agent is made of. */
static int look_up(struct native_context *self, PyObject *agent)
{
    if (take(&self->agent, agent, NATIVE_AGENT) < 0 ||
        take(&self->telling, native_get(agent, AGENT_TELLING), NATIVE_TELLING) < 0 ||
        take(&self->graph, native_get(self->telling, TELLING_GRAPH), NATIVE_GRAPH) < 0 ||
        take(&self->steps, native_get(agent, AGENT_STEPS), NATIVE_STEPS) < 0 ||
        take(&self->live, native_get(agent, AGENT_LIVE), NATIVE_LIVE) < 0 ||
        take(&self->timing, native_get(agent, AGENT_TIMING), NATIVE_TIMING) < 0 ||
        take(&self->scaler, native_get(agent, AGENT_SCALER), NATIVE_SCALER) < 0) {
        return -1;
    }
    PyObject *modules = PyObject_GetAttr(agent, native_names.modules);
    native_swap(&self->local, modules ? PyObject_GetAttr(modules, native_names.local) : NULL);
    Py_XDECREF(modules);
    return self->local ? 0 : -1;
}

static int init(PyObject *object, PyObject *args, PyObject *keywords)
{
    struct native_context *self = (struct native_context *)object;
    PyObject *agent, *part[9];
    unsigned long long handle, did, did_with, did_with_same;
    if (self->agent || keywords ||
        !PyArg_ParseTuple(args, "O(OOOOOOOOO)(KKKK):Context", &agent, &part[0], &part[1], &part[2],
                          &part[3], &part[4], &part[5], &part[6], &part[7], &part[8], &handle, &did,
                          &did_with, &did_with_same)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "a Context is made once, and has no keywords");
        }
        return -1;
    }
    PyObject **places[] = {&self->tensor,  &self->apart,     &self->storage,
                           &self->tracing, &self->step_type, &self->custom_type,
                           &self->types,   &self->type_of,   &self->custom_mark};
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        *places[i] = Py_NewRef(part[i]);
    }
    self->handle = (struct gradb *)(uintptr_t)handle;
    self->did = (void (*)(struct gradb *, gradb_node))(uintptr_t)did;
    self->did_with =
        (void (*)(struct gradb *, gradb_node, const gradb_tensor *, size_t))(uintptr_t)did_with;
    self->did_with_same = (void (*)(struct gradb *, gradb_node, const gradb_tensor *, size_t,
                                    const gradb_same *))(uintptr_t)did_with_same;
    return look_up(self, agent);
}

static PyObject *close_context(PyObject *object, PyObject *none)
{
    (void)none;
    ((struct native_context *)object)->handle = NULL;
    return Py_NewRef(Py_None);
}

#define REFERENCES 17

/* Where all references of a context lie. */
static void references(struct native_context *self, PyObject **ret[REFERENCES])
{
    PyObject **all[REFERENCES] = {
        &self->agent,   &self->telling,    &self->graph,     &self->steps,       &self->live,
        &self->timing,  &self->scaler,     &self->local,     &self->tensor,      &self->apart,
        &self->storage, &self->tracing,    &self->step_type, &self->custom_type, &self->types,
        &self->type_of, &self->custom_mark};
    for (size_t i = 0; i < REFERENCES; i++) {
        ret[i] = all[i];
    }
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    PyObject **all[REFERENCES];
    references((struct native_context *)object, all);
    Py_VISIT(Py_TYPE(object));
    for (size_t i = 0; i < REFERENCES; i++) {
        Py_VISIT(*all[i]);
    }
    return 0;
}

static int clear(PyObject *object)
{
    PyObject **all[REFERENCES];
    references((struct native_context *)object, all);
    for (size_t i = 0; i < REFERENCES; i++) {
        Py_CLEAR(*all[i]);
    }
    return 0;
}

static void dealloc(PyObject *object)
{
    native_dealloc(object, clear);
}

static PyMethodDef methods[] = {
    {"close", close_context, METH_NOARGS, "libgradb's handle is about to go"},
    {NULL, NULL, 0, NULL},
};

static char doc[] = "Context(agent, parts, addresses): see native.h";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_init, init},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec native_context_spec = {
    .name = "gradb._native.Context",
    .basicsize = sizeof(struct native_context),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
