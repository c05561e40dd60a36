// SPDX-License-Identifier: MIT
#include "pass_node.h"

#include <stddef.h>
#include <structmember.h>

#include "clock.h"
#include "graph.h"
#include "marks.h"
#include "names.h"
#include "objects.h"
#include "records.h"
#include "report.h"

PyTypeObject *native_pass_node_type;

/* ---- a node of the pass has run -------------------------------------------------------------- */

/* The origins of the results, None where there is no result. */
static PyObject *note_results(struct native_context *context, PyObject *node, PyObject *results)
{
    Py_ssize_t count = PyTuple_Size(results);
    PyObject *records = PyTuple_New(count);
    for (Py_ssize_t slot = 0; records && slot < count; slot++) {
        PyObject *tensor = PyTuple_GetItem(results, slot);
        PyObject *record = tensor == Py_None
                               ? Py_NewRef(Py_None)
                               : native_note_output(context, tensor, node, (long)slot);
        bool ok = record && (tensor == Py_None || native_mark(context, tensor, node) == 0);
        if (!ok) {
            Py_XDECREF(record);
            Py_CLEAR(records);
        } else {
            PyTuple_SetItem(records, slot, record); /* steals the reference */
        }
    }
    return records;
}

/* The edge from `pair` (node, slot) to `own` is among the node's edges: at that place, or for a
 * gradient at any. */
static int is_known_edge(const struct native_pass_node *own, PyObject *edges, PyObject *pair,
                         Py_ssize_t place)
{
    const struct native_pass_node *from = (const struct native_pass_node *)PyTuple_GetItem(pair, 0);
    Py_ssize_t count = PyTuple_Size(edges);
    Py_ssize_t last = own->variable || place >= count ? count : place + 1;
    int same = 0;
    for (Py_ssize_t i = own->variable ? 0 : place; same == 0 && i < last; i++) {
        PyObject *edge = PyTuple_GetItem(edges, i);
        if (edge != Py_None && PyTuple_GetItem(edge, 0) == from->node) {
            same =
                PyObject_RichCompareBool(PyTuple_GetItem(edge, 1), PyTuple_GetItem(pair, 1), Py_EQ);
        }
    }
    return same;
}

/* Its inputs are those of the last time. Several passes may go into one gradient; each is part of
 * its edges. */
static int has_same_inputs(const struct native_pass_node *own, PyObject *edges)
{
    if (!own->incoming || !PyList_Check(own->incoming)) {
        return 0;
    }
    Py_ssize_t place = 0;
    int same = 1;
    for (Py_ssize_t i = 0; same > 0 && i < PyList_Size(own->incoming); i++) {
        PyObject *pair = PyList_GetItem(own->incoming, i);
        if (((const struct native_pass_node *)PyTuple_GetItem(pair, 0))->node) {
            same = is_known_edge(own, edges, pair, place++);
        }
    }
    return same > 0 && !own->variable ? place == PyTuple_Size(edges) : same;
}

/* Updates the node's edges to those of this pass. */
static int update_inputs(struct native_pass_node *own, PyObject *node)
{
    PyObject *edges = Py_NewRef(native_get(node, NODE_EDGES));
    int same = PyTuple_Check(edges) ? has_same_inputs(own, edges) : 0;
    Py_DECREF(edges);
    return same == 0 ? native_call(own->context->reporter, native_names.joins, (PyObject *)own,
                                   node, NULL)
                     : (same > 0) - 1;
}

/* 1: reported; 0: it is for Python; -1. */
static int report_node(struct native_pass_node *own, PyObject *results, PyObject *before)
{
    struct native_context *context = own->context;
    if (!own->name || !PyTuple_Check(results) || !PyTuple_Check(before)) {
        return 0;
    }
    PyObject *node = native_next_known(context, own->name, false);
    if (!node) {
        return PyErr_Occurred() ? -1 : 0;
    }
    native_swap(&own->node, Py_NewRef(node));
    PyObject *records = update_inputs(own, node) == 0 ? note_results(context, node, results) : NULL;
    int status = records ? 0 : -1;
    if (records && PyTuple_Size(records) > 0) {
        status = native_ran(context, node, results, records, before);
    }
    Py_XDECREF(records);
    Py_DECREF(node);
    return status < 0 ? -1 : 1;
}

/* The node of a parameter's gradient; NULL without an exception: it is for Python. */
static PyObject *find_gradient_node(struct native_context *context, PyObject *variable)
{
    PyObject *key = PyLong_FromVoidPtr(variable);
    PyObject *origin =
        key ? PyDict_GetItemWithError(native_get(context->graph, GRAPH_LASTING), key) : NULL;
    PyObject *node = Py_None;
    if (origin && PyWeakref_GetObject(PyTuple_GetItem(origin, ORIGIN_TENSOR)) == variable) {
        node = native_get(PyTuple_GetItem(origin, ORIGIN_NODE), NODE_GRADIENT);
    }
    Py_XDECREF(key);
    return node != Py_None ? Py_NewRef(node) : NULL;
}

/* The same where a pass ends, in a leaf that accumulates. */
static int report_leaf(struct native_pass_node *own, PyObject *before)
{
    PyObject *node = find_gradient_node(own->context, own->variable);
    if (!node || !PyTuple_Check(before)) {
        Py_XDECREF(node);
        return PyErr_Occurred() ? -1 : 0;
    }
    PyObject *gradient = PyObject_GetAttr(own->variable, native_names.grad);
    int status = gradient ? 1 : -1;
    if (gradient && gradient != Py_None) {
        native_swap(&own->node, Py_NewRef(node));
        status = update_inputs(own, node) < 0
                     ? -1
                     : native_ran_one(own->context, node, gradient, before);
        status = status < 0 ? -1 : 1;
    }
    Py_XDECREF(gradient);
    Py_DECREF(node);
    return status;
}

/* ---- the hook -------------------------------------------------------------------------------- */

/* The operators inside are not the program's. */
static int report_apart(struct native_pass_node *own, PyObject *results, PyObject *before)
{
    struct native_context *context = own->context;
    int watching = native_truth(context->agent, AGENT_WATCHING_NOW);
    PyObject *apart = watching < 0 ? NULL : native_enter_apart(context);
    if (!apart) {
        return -1;
    }
    native_set(context->agent, AGENT_WATCHING_NOW, Py_False);
    int status = own->variable ? report_leaf(own, before) : report_node(own, results, before);
    if (native_leave_apart(apart) < 0) {
        status = -1;
    }
    if (watching && native_truth(context->agent, AGENT_DEAD) == 0) {
        native_set(context->agent, AGENT_WATCHING_NOW, Py_True);
    }
    return status;
}

int native_pass_ran(struct native_pass_node *own, PyObject *results, PyObject *before)
{
    struct native_context *context = own->context;
    int dead = native_truth(context->agent, AGENT_DEAD);
    if (dead != 0) {
        return dead < 0 ? -1 : 0;
    }
    int close = native_is_watched_closely(context);
    int status = close == 0 ? report_apart(own, results, before) : close < 0 ? -1 : 0;
    if (status != 0) {
        return status;
    }
    return native_call(context->reporter, native_names.backward_ran, (PyObject *)own, results,
                       before);
}

/* The node has run since the previous hook ended. */
static int note_time(struct native_clock *clock, struct native_pass_node *own)
{
    native_took(clock, clock->left);
    return own->variable && own->variable != Py_None ? native_add_leaf(clock, own->variable) : 0;
}

static PyObject *call_hook(PyObject *self, PyObject *args, PyObject *keywords)
{
    struct native_pass_node *own = (struct native_pass_node *)self;
    PyObject *results, *before;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "OO:PassNode", &results, &before)) {
        return NULL;
    }
    /* libgradb's handle may be freed meanwhile; the context is held for this call. */
    struct native_context *context = (struct native_context *)Py_XNewRef((PyObject *)own->context);
    struct native_clock *clock = context && context->clock->on ? context->clock : NULL;
    int status = clock ? note_time(clock, own) : 0;
    if (status == 0) {
        status = context && context->handle ? native_pass_ran(own, results, before) : 0;
    }
    if (status < 0) {
        status = native_report_fault(context);
    }
    if (clock) {
        clock->left = native_read_clock(clock);
    }
    Py_XDECREF((PyObject *)context);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- the type -------------------------------------------------------------------------------- */

NATIVE_COLLECTED(offsetof(struct native_pass_node, context),
                 offsetof(struct native_pass_node, type), offsetof(struct native_pass_node, mark),
                 offsetof(struct native_pass_node, operation),
                 offsetof(struct native_pass_node, name),
                 offsetof(struct native_pass_node, variable),
                 offsetof(struct native_pass_node, incoming),
                 offsetof(struct native_pass_node, nodes), offsetof(struct native_pass_node, node),
                 offsetof(struct native_pass_node, hooks))

static PyObject *remove_hook(PyObject *self, PyObject *none)
{
    PyObject *hooks = ((struct native_pass_node *)self)->hooks;
    (void)none;
    ((struct native_pass_node *)self)->hooks = NULL;
    int status = hooks ? PyObject_DelItem(hooks, self) : 0;
    if (status < 0 && PyErr_ExceptionMatches(PyExc_KeyError)) {
        PyErr_Clear(); /* it was removed already */
        status = 0;
    }
    Py_XDECREF(hooks);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

static PyMemberDef members[] = {
    {"type", T_OBJECT, offsetof(struct native_pass_node, type), 0, NULL},
    {"mark", T_OBJECT, offsetof(struct native_pass_node, mark), 0, NULL},
    {"marked", T_BOOL, offsetof(struct native_pass_node, marked), 0, NULL},
    {"operator", T_OBJECT, offsetof(struct native_pass_node, operation), 0, NULL},
    {"name", T_OBJECT, offsetof(struct native_pass_node, name), 0, NULL},
    {"variable", T_OBJECT, offsetof(struct native_pass_node, variable), 0, NULL},
    {"incoming", T_OBJECT, offsetof(struct native_pass_node, incoming), 0, NULL},
    {"nodes", T_OBJECT, offsetof(struct native_pass_node, nodes), 0, NULL},
    {"node", T_OBJECT, offsetof(struct native_pass_node, node), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef methods[] = {
    {"remove", remove_hook, METH_NOARGS, "like RemovableHandle.remove"},
    {NULL, NULL, 0, NULL},
};

static char doc[] = "The base of backward.PassNode: the hook of a grad_fn, and its own handle.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_call, call_hook},
    {Py_tp_traverse, visit_references},
    {Py_tp_clear, drop_references},
    {Py_tp_dealloc, free_object},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec native_pass_node_spec = {
    .name = "gradb._native.PassNode",
    .basicsize = sizeof(struct native_pass_node),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
