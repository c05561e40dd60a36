// SPDX-License-Identifier: MIT
#include "inputs.h"

#include "clock.h"
#include "graph.h"
#include "names.h"
#include "objects.h"
#include "records.h"
#include "report.h"
#include "seen.h"
#include "tensors.h"

#define MAX_DEPTH 8 /* of nested containers, as in ops.tensors_in */

/* The origin of a tensor in one of the graph's tables; NULL without an exception: it has none. */
static PyObject *find_known(PyObject *origins, PyObject *key, PyObject *tensor)
{
    PyObject *origin = PyDict_GetItemWithError(origins, key);
    bool same = origin && PyWeakref_GetObject(PyTuple_GetItem(origin, ORIGIN_TENSOR)) == tensor;
    return same ? Py_NewRef(origin) : NULL;
}

/* The same in all tables; writes are not considered, see graph.Graph.producer. */
static PyObject *find_own_origin(struct native_context *context, PyObject *key, PyObject *tensor)
{
    PyObject *origins = native_get(context->graph, GRAPH_ORIGINS);
    PyObject *origin = find_known(origins, key, tensor);
    if (!origin && !PyErr_Occurred()) {
        origin = find_known(native_get(context->graph, GRAPH_LASTING), key, tensor);
    }
    if (!origin && !PyErr_Occurred()) {
        origin = find_known(native_get(context->graph, GRAPH_BEFORE), key, tensor);
        if (origin && PyDict_SetItem(origins, key, origin) < 0) {
            Py_CLEAR(origin);
        }
    }
    return origin;
}

/* An operator has written to the tensor's memory since, see graph.Graph._last_writer. */
static int is_written_later(struct native_context *context, PyObject *origin, PyObject *tensor)
{
    PyObject *base = PyObject_GetAttr(tensor, native_names.base);
    PyObject *written = base == Py_None ? tensor : base;
    PyObject *key = written ? PyLong_FromVoidPtr(written) : NULL;
    PyObject *writer =
        key ? find_known(native_get(context->graph, GRAPH_WRITERS), key, written) : NULL;
    int later = writer ? PyObject_RichCompareBool(PyTuple_GetItem(writer, ORIGIN_VERSION),
                                                  PyTuple_GetItem(origin, ORIGIN_VERSION), Py_GT)
                       : 0;
    Py_XDECREF(writer);
    Py_XDECREF(key);
    Py_XDECREF(base);
    return PyErr_Occurred() ? -1 : later;
}

/* The origin is still what made the tensor's value. */
static int is_last_writer(struct native_context *context, PyObject *origin, PyObject *tensor)
{
    int same = native_take_equal(native_version(tensor), PyTuple_GetItem(origin, ORIGIN_VERSION));
    int later = same == 0 ? is_written_later(context, origin, tensor) : 0;
    return same < 0 || later < 0 ? -1 : !later;
}

static int is_unwritten(struct native_context *context, PyObject *origin, PyObject *tensor)
{
    if (PyDict_Size(native_get(context->graph, GRAPH_WRITERS)) == 0) {
        return 1;
    }
    PyObject *apart = native_enter_apart_for(context, tensor);
    if (!apart) {
        return -1;
    }
    int same = is_last_writer(context, origin, tensor);
    return native_leave_apart(apart) < 0 ? -1 : same;
}

/* The origin is the one that the edge names. */
static int is_edge(PyObject *origin, PyObject *edge)
{
    PyObject *node = PyTuple_GetItem(origin, ORIGIN_NODE);
    if (edge == Py_None || node == Py_None) {
        return edge == node;
    }
    return node == PyTuple_GetItem(edge, 0)
               ? PyObject_RichCompareBool(PyTuple_GetItem(origin, ORIGIN_SLOT),
                                          PyTuple_GetItem(edge, 1), Py_EQ)
               : 0;
}

/* A tensor from outside is read: its node counts as run, once in a step. See
 * reporter.Reporter._input_ran. */
static int note_outside(struct native_context *context, PyObject *node, PyObject *tensor)
{
    PyObject *before = PyTuple_New(0);
    double took = context->clock->took; /* by the operator that reads it */
    context->clock->took = -1;
    int status = before ? native_ran_one(context, node, tensor, before) : -1;
    context->clock->took = took;
    Py_XDECREF(before);
    return status;
}

/* The node has run in this step. */
static int has_run(struct native_context *context, PyObject *node)
{
    return PyObject_RichCompareBool(native_get(node, NODE_STEP),
                                    native_get(context->steps, STEPS_STEP), Py_EQ);
}

/* A tensor of this step that nobody has seen, where the last step had another one: data, targets.
 * See reporter.Reporter._foreign. */
static int is_next_from_outside(struct native_context *context, PyObject *tensor, PyObject *edge)
{
    if (edge == Py_None || (PyObject *)Py_TYPE(tensor) != context->tensor) {
        return 0;
    }
    PyObject *node = PyTuple_GetItem(edge, 0);
    int run = native_is_true(node, NODE_OUTSIDE) ? has_run(context, node) : 1;
    int trained =
        run == 0 ? native_take_truth(PyObject_GetAttr(tensor, native_names.requires_grad)) : run;
    if (trained != 0) {
        return trained < 0 ? -1 : 0;
    }
    return note_outside(context, node, tensor) < 0 ? -1 : 1;
}

/* The same as before from outside: it counts as run. */
static int note_if_outside(struct native_context *context, PyObject *tensor, PyObject *edge)
{
    PyObject *node = edge == Py_None ? NULL : PyTuple_GetItem(edge, 0);
    int run = node && native_is_true(node, NODE_OUTSIDE) ? has_run(context, node) : 1;
    return run == 0 ? note_outside(context, node, tensor) : run < 0 ? -1 : 0;
}

static int is_same_input(struct native_context *context, PyObject *tensor, PyObject *edge)
{
    PyObject *key = PyLong_FromVoidPtr(tensor);
    PyObject *known = key ? find_own_origin(context, key, tensor) : NULL;
    PyObject *origin = PyErr_Occurred() ? NULL : native_latest_origin(context, tensor, known);
    int same = origin             ? is_edge(origin, edge)
               : PyErr_Occurred() ? -1
                                  : is_next_from_outside(context, tensor, edge);
    if (same > 0 && origin) {
        same = is_unwritten(context, origin, tensor);
    }
    if (same > 0 && origin && note_if_outside(context, tensor, edge) < 0) {
        same = -1;
    }
    Py_XDECREF(origin);
    Py_XDECREF(known);
    Py_XDECREF(key);
    return same;
}

struct reading {
    struct native_context *context;
    PyObject *edges;
    Py_ssize_t position; /* of the edge of the next tensor */
};

static int is_known_value(struct reading *reading, PyObject *value, int depth);

static int are_known_values(struct reading *reading, PyObject *values, int depth)
{
    PyObject *items = depth < MAX_DEPTH ? PySequence_Tuple(values) : PyTuple_New(0);
    int same = items ? 1 : -1;
    for (Py_ssize_t i = 0; same > 0 && i < PyTuple_Size(items); i++) {
        same = is_known_value(reading, PyTuple_GetItem(items, i), depth + 1);
    }
    Py_XDECREF(items);
    return same;
}

static int is_known_value(struct reading *reading, PyObject *value, int depth)
{
    int tensor = PyObject_TypeCheck(value, (PyTypeObject *)reading->context->tensor);
    if (tensor) {
        bool more = reading->position < PyTuple_Size(reading->edges);
        return more ? is_same_input(reading->context, value,
                                    PyTuple_GetItem(reading->edges, reading->position++))
                    : 0;
    }
    if (PyTuple_Check(value) || PyList_Check(value)) {
        return are_known_values(reading, value, depth);
    }
    if (PyDict_Check(value)) {
        PyObject *values = PyDict_Values(value);
        int same = values ? are_known_values(reading, values, depth) : -1;
        Py_XDECREF(values);
        return same;
    }
    return !(PyType_GetFlags(Py_TYPE(value)) & Py_TPFLAGS_HEAPTYPE) || /* not a dataclass */
           !PyObject_HasAttr((PyObject *)Py_TYPE(value), native_names.dataclass_fields);
}

int native_reads_same(struct native_context *context, PyObject *node, PyObject *args,
                      PyObject *keywords)
{
    struct reading reading = {.context = context, .edges = Py_NewRef(native_get(node, NODE_EDGES))};
    int same = PyTuple_Check(reading.edges) ? is_known_value(&reading, args, 0) : 0;
    if (same > 0 && keywords != Py_None) {
        same = is_known_value(&reading, keywords, 0);
    }
    if (same > 0) {
        same = reading.position == PyTuple_Size(reading.edges);
    }
    Py_DECREF(reading.edges);
    return same;
}

/* vars(module)[kind][key], borrowed. NULL: nothing is there, or it is not in a dict; may leave an
 * exception. */
static PyObject *find_held(PyObject *module, PyObject *kind, PyObject *key)
{
    PyObject *vars = PyObject_GenericGetDict(module, NULL);
    PyObject *table = vars ? PyDict_GetItemWithError(vars, kind) : NULL;
    PyObject *held = table && PyDict_Check(table) ? PyDict_GetItemWithError(table, key) : NULL;
    Py_XDECREF(vars);
    return held;
}

PyObject *native_in_place(PyObject *module, PyObject *args)
{
    PyObject *held, *chain;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!", &held, &PyTuple_Type, &chain)) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(chain); i++) {
        PyObject *place = PyTuple_GetItem(chain, i);
        PyObject *holder = PyWeakref_GetObject(PyTuple_GetItem(place, 0));
        if (!holder || holder == Py_None ||
            find_held(holder, PyTuple_GetItem(place, 1), PyTuple_GetItem(place, 2)) != held) {
            return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
        }
        held = holder;
    }
    return Py_NewRef(Py_True);
}
