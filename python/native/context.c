// SPDX-License-Identifier: MIT
#include "native.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FUNCTIONS 14 /* of libgradb */

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

PyObject *native_enter_apart_for(const struct native_context *context, PyObject *tensor)
{
    PyObject *type = (PyObject *)Py_TYPE(tensor);
    bool plain = type == context->tensor || type == context->parameter || tensor == Py_None;
    PyObject *modes = plain ? PyObject_CallNoArgs(context->modes) : Py_NewRef(Py_True);
    if (!modes) {
        return NULL;
    }
    bool seen = modes != Py_False;
    Py_DECREF(modes);
    return seen ? native_enter_apart(context) : Py_NewRef(Py_None);
}

int native_leave_apart(PyObject *apart)
{
    if (apart == Py_None) {
        Py_DECREF(apart);
        return PyErr_Occurred() ? -1 : 0;
    }
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
    return context->clock->on;
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

/* ---- the type -------------------------------------------------------------------------------- */

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
        take(&self->scaler, native_get(agent, AGENT_SCALER), NATIVE_SCALER) < 0 ||
        take(&self->events, native_get(agent, AGENT_EVENTS), NATIVE_EVENTS) < 0 ||
        take(&self->backward, native_get(agent, AGENT_BACKWARD), NATIVE_BACKWARD) < 0) {
        return -1;
    }
    PyObject *clock = native_get(agent, AGENT_TIMING);
    PyObject *clearing = PyObject_GetAttr(native_get(agent, AGENT_CLEARING), native_names.first);
    native_swap((PyObject **)&self->clearing, clearing);
    if (!clearing || !PyObject_TypeCheck(clearing, native_clearing_type) ||
        !PyObject_TypeCheck(clock, native_clock_type) ||
        !native_is_a(native_get(self->events, EVENTS_LOADER), NATIVE_LOADER)) {
        PyErr_SetString(PyExc_TypeError, "a part of the agent is not of its class");
        return -1;
    }
    native_swap((PyObject **)&self->clock, Py_NewRef(clock));
    PyObject *modules = PyObject_GetAttr(agent, native_names.modules);
    native_swap(&self->local, modules ? PyObject_GetAttr(modules, native_names.local) : NULL);
    Py_XDECREF(modules);
    return self->local ? 0 : -1;
}

/* Functions of libgradb, by their addresses in the order of agent.ADDRESSES. */
static void take_functions(struct native_context *self, const unsigned long long *address)
{
    void *places[FUNCTIONS] = {&self->did,        &self->did_with,         &self->did_with_same,
                               &self->step_begin, &self->step_end,         &self->enter,
                               &self->scalar,     &self->timing,           &self->is_connected,
                               &self->wants_stop, &self->wants_checkpoint, &self->on_armed,
                               &self->try_enter,  &self->try_step};
    for (size_t i = 0; i < FUNCTIONS; i++) {
        void *function = (void *)(uintptr_t)address[i];
        memcpy(places[i], &function, sizeof(function));
    }
}

static int take_addresses(struct native_context *self, PyObject *addresses)
{
    unsigned long long address[FUNCTIONS];
    if (PyTuple_Size(addresses) != FUNCTIONS) {
        PyErr_SetString(PyExc_TypeError, "there are other functions of libgradb");
        return -1;
    }
    for (Py_ssize_t i = 0; i < FUNCTIONS; i++) {
        address[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(addresses, i));
    }
    if (PyErr_Occurred()) {
        return -1;
    }
    take_functions(self, address);
    return 0;
}

static int init(PyObject *object, PyObject *args, PyObject *keywords)
{
    struct native_context *self = (struct native_context *)object;
    PyObject *agent, *addresses, *part[14];
    unsigned long long handle;
    if (self->agent || keywords ||
        !PyArg_ParseTuple(args, "O(OOOOOOOOOOOOOO)KO!:Context", &agent, &part[0], &part[1],
                          &part[2], &part[3], &part[4], &part[5], &part[6], &part[7], &part[8],
                          &part[9], &part[10], &part[11], &part[12], &part[13], &handle,
                          &PyTuple_Type, &addresses)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "a Context is made once, and has no keywords");
        }
        return -1;
    }
    PyObject **places[] = {&self->tensor,      &self->apart,         &self->storage,
                           &self->tracing,     &self->has_gradients, &self->modes,
                           &self->parameter,   &self->undispatched,  &self->step_type,
                           &self->custom_type, &self->types,         &self->type_of,
                           &self->custom_mark, &self->stand_in};
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        *places[i] = Py_NewRef(part[i]);
    }
    self->handle = (struct gradb *)(uintptr_t)handle;
    self->thread = PyThread_get_thread_ident();
    return take_addresses(self, addresses) < 0 ? -1 : look_up(self, agent);
}

static PyObject *close_context(PyObject *object, PyObject *none)
{
    (void)none;
    native_forget_handed((struct native_context *)object);
    ((struct native_context *)object)->handle = NULL;
    return Py_NewRef(Py_None);
}

#define AT(member) offsetof(struct native_context, member)
static const size_t references[] = {
    AT(agent),         AT(telling),   AT(graph),          AT(steps),           AT(live),
    AT(scaler),        AT(events),    AT(backward),       AT(clock),           AT(clearing),
    AT(local),         AT(tensor),    AT(apart),          AT(storage),         AT(tracing),
    AT(has_gradients), AT(modes),     AT(parameter),      AT(undispatched),    AT(step_type),
    AT(custom_type),   AT(types),     AT(type_of),        AT(custom_mark),     AT(stand_in),
    AT(recording),     AT(outermost), AT(outermost_path), AT(evaluation_path), 0};
#undef AT

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    return native_visit(self, references, visit, arg);
}

static int clear(PyObject *self)
{
    native_forget_handed((struct native_context *)self);
    return native_drop(self, references);
}

static void dealloc(PyObject *self)
{
    native_dealloc(self, clear);
}

static PyMethodDef methods[] = {
    {"close", close_context, METH_NOARGS, "libgradb's handle is about to go"},
    {"idle", native_idle, METH_VARARGS,
     "idle(steps, connected, recording): so many steps are idle, with a debugger or without; "
     "recording: says whether a CUDA graph is being recorded, None where none can be"},
    {"is_nested", native_is_nested, METH_NOARGS,
     "whether the module that is called is inside of another, and nobody looks"},
    {"outermost", native_outermost, METH_VARARGS,
     "outermost(reference, path, path when it evaluates): what forward passes begin with"},
    {"is_outermost", native_is_outermost, METH_O,
     "whether the module that is called is that one, and nobody looks: the pass has begun"},
    {"optimizer_begins", native_optimizer_begins, METH_VARARGS,
     "optimizer_begins(optimizer, args, kwargs), as Optimizers; False: not done"},
    {"optimizer_ended", native_optimizer_ended, METH_O,
     "as Steps.optimizer_ended; False: not done"},
    {"give_numbers", native_give_numbers, METH_NOARGS,
     "the loss and the rates that idle steps have noted go to agent.events"},
    {"hand_over", native_hand_over, METH_O,
     "hand_over(on): Python's wrappers stand aside, until agent.take_back is called"},
    {"before_step", (PyCFunction)(void (*)(void))native_before_step, METH_FASTCALL,
     "as Optimizers.before"},
    {"after_step", (PyCFunction)(void (*)(void))native_after_step, METH_FASTCALL,
     "as Optimizers.after"},
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
