// SPDX-License-Identifier: MIT
/* A backward pass that has run before (known_pass.h): its nodes have hooks of C++, which report
 * them without Python. What is not as it was then goes to Python, as all nodes of other passes do.
 */
#include "module.h"

#include <stddef.h>
#include <stdlib.h>

#include "autograd.h"
#include "clock.h"
#include "context.h"
#include "graph.h"
#include "known_pass.h"
#include "objects.h"
#include "pass_node.h"
#include "records.h"
#include "report.h"

struct pass {
    PyObject ob_base;
    struct native_context *context;
    PyObject *roots; /* which keep the nodes */
    PyObject *error; /* an interrupt that came while the pass ran; NULL: none */
    struct native_known *known;
    struct native_walk walk;
    struct native_hook *hooks; /* one for each node; NULL: they are off */
};
PyTypeObject *native_pass_type;

/* ---- a node has run -------------------------------------------------------------------------- */

/* Fills in the tensor that a leaf's PassNode does not keep. */
static struct native_pass_node *find_own(const struct native_known_node *known)
{
    struct native_pass_node *own = (struct native_pass_node *)known->own;
    if (known->leaf) {
        native_swap(&own->variable, Py_XNewRef(PyWeakref_GetObject(known->leaf)));
    }
    return own;
}

static void let_go(const struct native_known_node *known)
{
    if (known->leaf) {
        Py_CLEAR(((struct native_pass_node *)known->own)->variable);
    }
}

/* Like Python's hook of the same node. */
static int report_by_python(struct native_known *all, const struct native_known_node *known,
                            const struct native_tensors *outputs,
                            const struct native_tensors *inputs)
{
    PyObject *results = native_wrap_all(outputs);
    PyObject *before = results ? native_wrap_all(inputs) : NULL;
    struct native_pass_node *own = find_own(known);
    int status = before ? native_pass_ran(own, results, before) : -1;
    all->stale |= own->node != known->node;
    let_go(known);
    Py_XDECREF(before);
    Py_XDECREF(results);
    return status;
}

/* No other pass has changed its edges in the graph since. */
static int has_same_inputs(const struct native_known_node *known)
{
    PyObject *inputs = native_get(known->node, NODE_EDGES);
    return inputs == known->inputs ? 1 : PyObject_RichCompareBool(inputs, known->inputs, Py_EQ);
}

/* 1: reported; 0: it is for Python, and nothing was noted; -1. */
static int report_known(struct native_context *context, const struct native_known_node *known,
                        const struct native_tensors *outputs, const struct native_tensors *inputs)
{
    int close = native_is_watched_closely(context);
    int ready = close == 0 ? has_same_inputs(known) : close;
    if (close == 0 && ready > 0) {
        ready = native_can_run_unwrapped(context, known->node, outputs);
    }
    if (close != 0 || ready <= 0) {
        return close < 0 || ready < 0 ? -1 : 0;
    }
    int counted = known->family ? native_count_known(context, known->family, known->ordinal) : 1;
    return counted > 0 ? native_ran_unwrapped(context, known->node, outputs, inputs) < 0 ? -1 : 1
                       : counted;
}

/* The same for the gradient that a leaf has now, if any. */
static int report_leaf(struct native_context *context, const struct native_known_node *known,
                       const void *node, const struct native_tensors *inputs)
{
    void **gradient = native_gradient(native_leaf(node));
    struct native_tensors one = {gradient, gradient + 1, gradient + 1};
    return gradient ? report_known(context, known, &one, inputs) : 0;
}

static int report_node(struct pass *pass, uint32_t number, const struct native_tensors *outputs,
                       const struct native_tensors *inputs)
{
    struct native_context *context = pass->context;
    const struct native_known_node *known = &pass->known->nodes[number];
    if (native_truth(context->agent, AGENT_DEAD) != 0) {
        return PyErr_Occurred() ? -1 : 0;
    }
    if (native_tensor_count(outputs) == 0 && !known->leaf) {
        return report_by_python(pass->known, known, outputs, inputs);
    }
    int watching = native_truth(context->agent, AGENT_WATCHING_NOW);
    native_set(context->agent, AGENT_WATCHING_NOW, Py_False);
    int told = known->leaf ? report_leaf(context, known, pass->walk.nodes[number], inputs)
                           : report_known(context, known, outputs, inputs);
    if (watching > 0 && native_truth(context->agent, AGENT_DEAD) == 0) {
        native_set(context->agent, AGENT_WATCHING_NOW, Py_True);
    }
    return told == 0 ? report_by_python(pass->known, known, outputs, inputs) : told;
}

/* Of a node that has run since the previous hook ended. */
static int note_time(const struct pass *pass, uint32_t number)
{
    struct native_clock *clock = pass->context->clock;
    const struct native_known_node *known = &pass->known->nodes[number];
    native_took(clock, clock->left);
    PyObject *leaf = known->leaf ? PyWeakref_GetObject(known->leaf) : NULL;
    return leaf && leaf != Py_None ? native_add_leaf(clock, leaf) : 0;
}

/* A fault is reported. An interrupt, which must not go through C++, waits for the end of the pass.
 */
static void take_error(struct pass *pass)
{
    if (native_report_fault(pass->context) == 0) {
        return;
    }
    struct native_error error = native_take_error();
    native_normalize_error(&error);
    native_swap(&pass->error, Py_XNewRef(error.value));
    native_drop_error(error);
}

static void note_ran(const struct native_hook *hook, const struct native_tensors *outputs,
                     const struct native_tensors *inputs)
{
    PyGILState_STATE state = PyGILState_Ensure();
    struct pass *pass = hook->ctx;
    struct native_context *context = pass->context;
    struct native_clock *clock = context->clock->on ? context->clock : NULL;
    int status = clock ? note_time(pass, hook->index) : 0;
    if (status == 0 && context->handle && !pass->error) {
        status = report_node(pass, hook->index, outputs, inputs);
    }
    if (status < 0) {
        take_error(pass);
    }
    if (clock) {
        clock->left = native_read_clock(clock);
    }
    PyGILState_Release(state);
}

/* ---- before and after ------------------------------------------------------------------------ */

static void take_off(struct pass *pass)
{
    for (uint32_t i = 0; pass->hooks && i < pass->walk.count; i++) {
        native_detach(pass->walk.nodes[i], &pass->hooks[i]);
    }
    free(pass->hooks);
    pass->hooks = NULL;
}

static int put_on(struct pass *pass)
{
    pass->hooks = calloc(pass->walk.count + 1, sizeof(*pass->hooks));
    bool all = pass->hooks;
    for (uint32_t i = 0; all && i < pass->walk.count; i++) {
        struct native_hook *hook = &pass->hooks[i];
        *hook = (struct native_hook){.run = note_ran, .ctx = pass, .index = i};
        native_prepare_hook(hook);
        all = native_attach(pass->walk.nodes[i], hook);
    }
    if (!all) {
        take_off(pass);
        PyErr_NoMemory();
    }
    return all ? 0 : -1;
}

static PyObject *make_pass(struct native_context *context, PyObject *roots,
                           struct native_known *known, struct native_walk *walk)
{
    struct pass *pass = (struct pass *)PyType_GenericAlloc(native_pass_type, 0);
    if (!pass) {
        native_leave_known(known);
        return NULL;
    }
    pass->context = (struct native_context *)Py_NewRef((PyObject *)context);
    pass->roots = Py_NewRef(roots);
    pass->known = known;
    pass->walk = *walk;
    *walk = (struct native_walk){0};
    if (put_on(pass) < 0) {
        Py_CLEAR(pass);
    }
    return (PyObject *)pass;
}

PyObject *native_hook_known(PyObject *module, PyObject *args)
{
    struct native_context *context;
    PyObject *roots;
    struct native_walk walk;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!:hook_known", native_context_type, &context, &PyList_Type,
                          &roots)) {
        return NULL;
    }
    if (!native_knows_nodes()) {
        return Py_NewRef(Py_None);
    }
    native_begin_trace(context);
    int close = native_is_watched_closely(context);
    if (close != 0 || !context->known || !native_walk(roots, &walk)) {
        return close < 0 ? NULL : PyLong_FromUnsignedLongLong(context->trace);
    }
    struct native_known *known = native_recognize(context, &walk);
    PyObject *pass = known ? make_pass(context, roots, known, &walk)
                           : PyLong_FromUnsignedLongLong(context->trace);
    context->passes_missed = known ? 0 : context->passes_missed;
    native_free_walk(&walk);
    return pass;
}

/* ---- the type -------------------------------------------------------------------------------- */

static PyObject *remove_hooks(PyObject *self, PyObject *none)
{
    (void)none;
    take_off((struct pass *)self);
    return Py_NewRef(Py_None);
}

/* Raises the interrupt that came while it ran. */
static PyObject *end_pass(PyObject *self, PyObject *none)
{
    struct pass *pass = (struct pass *)self;
    (void)none;
    take_off(pass);
    if (pass->error) {
        PyErr_SetObject((PyObject *)Py_TYPE(pass->error), pass->error);
        Py_CLEAR(pass->error);
        return NULL;
    }
    return Py_NewRef(Py_None);
}

static PyObject *find_node(PyObject *self, PyObject *function)
{
    const struct pass *pass = (const struct pass *)self;
    const void *node = function == Py_None ? NULL : native_node_of(function);
    uint32_t number = node ? native_number_in(&pass->walk, node) : NATIVE_NONE;
    return number != NATIVE_NONE ? Py_NewRef((PyObject *)find_own(&pass->known->nodes[number]))
                                 : Py_NewRef(Py_None);
}

static const size_t reference_offsets[] = {
    offsetof(struct pass, context), offsetof(struct pass, roots), offsetof(struct pass, error), 0};

static int visit_references(PyObject *self, visitproc visit, void *arg)
{
    return native_visit(self, reference_offsets, visit, arg);
}

static int drop_references(PyObject *self)
{
    struct pass *pass = (struct pass *)self;
    take_off(pass);
    if (pass->known) {
        for (uint32_t i = 0; i < pass->walk.count; i++) {
            let_go(&pass->known->nodes[i]);
        }
        native_leave_known(pass->known);
        pass->known = NULL;
    }
    native_free_walk(&pass->walk);
    return native_drop(self, reference_offsets);
}

static void free_pass(PyObject *self)
{
    native_dealloc(self, drop_references);
}

static PyMethodDef methods[] = {
    {"get", find_node, METH_O, "get(grad_fn): its PassNode, or None"},
    {"remove", remove_hooks, METH_NOARGS, "takes the hooks off"},
    {"clear", end_pass, METH_NOARGS, "takes the hooks off; raises the interrupt that came"},
    {NULL, NULL, 0, NULL},
};

static char doc[] = "A backward pass that has run before, with its hooks on.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},           {Py_tp_traverse, visit_references}, {Py_tp_clear, drop_references},
    {Py_tp_dealloc, free_pass}, {Py_tp_methods, methods},           {0, NULL},
};

PyType_Spec native_pass_spec = {
    .name = "gradb._native.Pass",
    .basicsize = sizeof(struct pass),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
