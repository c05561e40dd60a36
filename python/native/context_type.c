// SPDX-License-Identifier: MIT
/* The Python type of a context: how it is made, and the methods that Python calls. */
#include "module.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "clearing.h"
#include "clock.h"
#include "context.h"
#include "hand_over.h"
#include "idle.h"
#include "known_pass.h"
#include "marks.h"
#include "names.h"
#include "numbers.h"
#include "objects.h"
#include "records.h"
#include "seen.h"
#include "site.h"

#define FUNCTIONS 14 /* of libgradb */

static int take_part(PyObject **place, PyObject *value, enum native_kind kind)
{
    if (!native_is_a(value, kind)) {
        PyErr_SetString(PyExc_TypeError, "a part of the agent is not of its class");
        return -1;
    }
    native_swap(place, Py_NewRef(value));
    return 0;
}

/* Takes the parts of the agent. */
static int take_parts(struct native_context *self, PyObject *agent)
{
    if (take_part(&self->agent, agent, NATIVE_AGENT) < 0 ||
        take_part(&self->reporter, native_get(agent, AGENT_REPORTER), NATIVE_REPORTER) < 0 ||
        take_part(&self->graph, native_get(self->reporter, REPORTER_GRAPH), NATIVE_GRAPH) < 0 ||
        take_part(&self->steps, native_get(agent, AGENT_STEPS), NATIVE_STEPS) < 0 ||
        take_part(&self->live, native_get(agent, AGENT_LIVE), NATIVE_LIVE) < 0 ||
        take_part(&self->scaler, native_get(agent, AGENT_SCALER), NATIVE_SCALER) < 0 ||
        take_part(&self->events, native_get(agent, AGENT_EVENTS), NATIVE_EVENTS) < 0 ||
        take_part(&self->backward, native_get(agent, AGENT_BACKWARD), NATIVE_BACKWARD) < 0) {
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

/* Takes the addresses of libgradb's functions, in the order of agent.ADDRESSES. */
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
        PyErr_SetString(PyExc_TypeError, "the number of libgradb's functions differs");
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

static int init_context(PyObject *object, PyObject *args, PyObject *keywords)
{
    struct native_context *self = (struct native_context *)object;
    PyObject *agent, *addresses, *part[15];
    unsigned long long handle;
    if (self->agent || keywords ||
        !PyArg_ParseTuple(args, "O(OOOOOOOOOOOOOOO)KO!:Context", &agent, &part[0], &part[1],
                          &part[2], &part[3], &part[4], &part[5], &part[6], &part[7], &part[8],
                          &part[9], &part[10], &part[11], &part[12], &part[13], &part[14], &handle,
                          &PyTuple_Type, &addresses)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "a Context is made once, without keywords");
        }
        return -1;
    }
    PyObject **places[] = {&self->tensor,      &self->apart,         &self->storage,
                           &self->tracing,     &self->has_gradients, &self->modes,
                           &self->parameter,   &self->undispatched,  &self->node_type,
                           &self->custom_type, &self->types,         &self->type_of,
                           &self->custom_mark, &self->stand_in,      &self->ref};
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        *places[i] = Py_NewRef(part[i]);
    }
    self->handle = (struct gradb *)(uintptr_t)handle;
    self->thread = PyThread_get_thread_ident();
    return take_addresses(self, addresses) < 0 ? -1 : take_parts(self, agent);
}

static PyObject *close_context(PyObject *object, PyObject *none)
{
    (void)none;
    struct native_context *self = (struct native_context *)object;
    native_forget_handed(self);
    native_forget_passes(self);
    native_forget_seen(self);
    native_forget_marks(self);
    self->handle = NULL;
    return Py_NewRef(Py_None);
}

static PyObject *is_connected(PyObject *object, PyObject *none)
{
    const struct native_context *self = (const struct native_context *)object;
    (void)none;
    return PyBool_FromLong(self->handle && self->is_connected(self->handle));
}

#define AT(member) offsetof(struct native_context, member)
static const size_t reference_offsets[] = {AT(agent),
                                           AT(reporter),
                                           AT(graph),
                                           AT(steps),
                                           AT(live),
                                           AT(scaler),
                                           AT(events),
                                           AT(backward),
                                           AT(clock),
                                           AT(clearing),
                                           AT(local),
                                           AT(tensor),
                                           AT(apart),
                                           AT(storage),
                                           AT(tracing),
                                           AT(has_gradients),
                                           AT(modes),
                                           AT(parameter),
                                           AT(undispatched),
                                           AT(node_type),
                                           AT(custom_type),
                                           AT(types),
                                           AT(type_of),
                                           AT(custom_mark),
                                           AT(stand_in),
                                           AT(recording),
                                           AT(outermost),
                                           AT(outermost_path),
                                           AT(evaluation_path),
                                           AT(traced),
                                           AT(codes),
                                           AT(sites),
                                           AT(scopes),
                                           AT(paths),
                                           AT(ref),
                                           0};
#undef AT

static int traverse_context(PyObject *self, visitproc visit, void *arg)
{
    return native_visit(self, reference_offsets, visit, arg);
}

static int clear_context(PyObject *self)
{
    native_forget_handed((struct native_context *)self);
    native_forget_passes((struct native_context *)self);
    native_forget_seen((struct native_context *)self);
    native_forget_marks((struct native_context *)self);
    return native_drop(self, reference_offsets);
}

static void free_context(PyObject *self)
{
    native_dealloc(self, clear_context);
}

static PyMethodDef methods[] = {
    {"close", close_context, METH_NOARGS, "call it before libgradb's handle is freed"},
    {"idle", native_idle, METH_VARARGS,
     "idle(steps, connected, recording): the next steps are idle, with a debugger connected or "
     "not; recording: says whether a CUDA graph is being recorded, None where none can be"},
    {"is_nested", native_is_nested, METH_NOARGS,
     "whether the called module is inside another one, in an unwatched step"},
    {"outermost", native_outermost, METH_VARARGS,
     "outermost(reference, path, path when it evaluates): the module that forward passes begin "
     "with"},
    {"is_outermost", native_is_outermost, METH_O,
     "whether the called module is the outermost one, in an unwatched step: the pass has begun"},
    {"optimizer_begins", native_optimizer_begins, METH_VARARGS,
     "optimizer_begins(optimizer, args, kwargs), like Optimizers; False: not done"},
    {"optimizer_ended", native_optimizer_ended, METH_O,
     "like Steps.optimizer_ended; False: not done"},
    {"give_numbers", native_give_numbers, METH_NOARGS,
     "moves the loss and the rates that idle steps noted to agent.events"},
    {"mark", native_mark_output, METH_VARARGS,
     "mark(tensor, node): leaves the node's mark on the tensor's grad_fn"},
    {"mark_of", native_mark_of, METH_O,
     "mark_of(grad_fn): the mark that `mark` has left; None: look into the metadata"},
    {"origin_of", native_origin_of, METH_O,
     "origin_of(tensor): its origin, as in graph.Graph, if a backward node has made it; or None"},
    {"has_seen", native_has_seen, METH_O,
     "has_seen(number of a node): whether take_seen() may have something of it"},
    {"let_go", native_let_go, METH_O,
     "let_go(address of a tensor in C++): the object of another tensor gets it; forgets what made "
     "it"},
    {"take_seen", native_take_seen, METH_NOARGS,
     "[(number of a node, step, records)] for live.Live, of what backward nodes have made"},
    {"use_sites", native_use_sites, METH_VARARGS,
     "use_sites(stack._codes, stack._sites, Reporter.scopes, Modules.paths): finds known places "
     "itself"},
    {"enter_module", native_enter_module, METH_O,
     "enter_module(module): a module whose path is known is called inside another one, while "
     "operators are watched; returns the path to set when it returns. None: nothing was done"},
    {"is_connected", is_connected, METH_NOARGS, "whether a debugger is connected"},
    {"hand_over", native_hand_over, METH_O,
     "hand_over(on): Python's wrappers are out of use until agent.take_back is called"},
    {"before_step", (PyCFunction)(void (*)(void))native_before_step, METH_FASTCALL,
     "like Optimizers.before"},
    {"after_step", (PyCFunction)(void (*)(void))native_after_step, METH_FASTCALL,
     "like Optimizers.after"},
    {NULL, NULL, 0, NULL},
};

static char doc[] = "Context(agent, parts, addresses): see context.h";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_init, init_context},
    {Py_tp_traverse, traverse_context},
    {Py_tp_clear, clear_context},
    {Py_tp_dealloc, free_context},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec native_context_spec = {
    .name = "gradb._native.Context",
    .basicsize = sizeof(struct native_context),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
