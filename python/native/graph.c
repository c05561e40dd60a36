// SPDX-License-Identifier: MIT
#include "graph.h"

#include "names.h"
#include "objects.h"
#include "records.h"
#include "tensors.h"

/* How many of the family have run in this step. */
static Py_ssize_t get_count(PyObject *family, PyObject *step)
{
    int same = PyObject_RichCompareBool(native_get(family, FAMILY_STEP), step, Py_EQ);
    return same <= 0 ? same : PyLong_AsSsize_t(native_get(family, FAMILY_COUNT));
}

static int count_one(PyObject *family, PyObject *step, Py_ssize_t count)
{
    if (native_set_new(family, FAMILY_COUNT, PyLong_FromSsize_t(count)) < 0) {
        return -1;
    }
    native_set(family, FAMILY_STEP, step);
    return 0;
}

static PyObject *find_next(PyObject *family, PyObject *step, bool learnt)
{
    Py_ssize_t ordinal = get_count(family, step);
    PyObject *nodes = native_get(family, FAMILY_NODES);
    if (ordinal < 0 || ordinal >= PyList_Size(nodes)) {
        return NULL;
    }
    PyObject *node = PyList_GetItem(nodes, ordinal);
    int known = native_truth(node, learnt ? NODE_LEARNT : NODE_ID);
    return known > 0 && count_one(family, step, ordinal + 1) == 0 ? Py_NewRef(node) : NULL;
}

PyObject *native_next_known(struct native_context *context, PyObject *key, bool learnt)
{
    PyObject *families = native_get(context->graph, GRAPH_FAMILIES);
    PyObject *family = PyDict_GetItemWithError(families, key);
    PyObject *step = native_get(context->graph, GRAPH_STEP);
    int novel = family && learnt
                    ? PyObject_RichCompareBool(native_get(context->graph, GRAPH_NOVEL), step, Py_EQ)
                    : 0;
    return family && novel == 0 ? find_next(family, step, learnt) : NULL;
}

int native_count_known(struct native_context *context, PyObject *family, Py_ssize_t ordinal)
{
    PyObject *step = native_get(context->graph, GRAPH_STEP);
    Py_ssize_t count = get_count(family, step);
    if (count != ordinal) {
        return PyErr_Occurred() ? -1 : 0;
    }
    return count_one(family, step, ordinal + 1) < 0 ? -1 : 1;
}

static PyObject *make_origin(const struct native_context *context, PyObject *tensor, PyObject *node,
                             long slot)
{
    PyObject *reference = native_refer(context, tensor);
    PyObject *version = reference ? native_version(tensor) : NULL;
    PyObject *number = version ? PyLong_FromLong(slot) : NULL;
    PyObject *origin = number ? PyTuple_Pack(4, reference, version, node, number) : NULL;
    Py_XDECREF(number);
    Py_XDECREF(version);
    Py_XDECREF(reference);
    return origin;
}

PyObject *native_note_output(struct native_context *context, PyObject *tensor, PyObject *node,
                             long slot)
{
    PyObject *key = PyLong_FromVoidPtr(tensor); /* what id() gives */
    PyObject *origin = key ? make_origin(context, tensor, node, slot) : NULL;
    if (origin && PyDict_SetItem(native_get(context->graph, GRAPH_ORIGINS), key, origin) < 0) {
        Py_CLEAR(origin);
    }
    Py_XDECREF(key);
    return origin;
}

/* The origin of a tensor, for the base that its memory belongs to. */
static PyObject *make_base_origin(const struct native_context *context, PyObject *origin,
                                  PyObject *base)
{
    PyObject *reference = native_refer(context, base);
    PyObject *written = reference
                            ? PyTuple_Pack(4, reference, PyTuple_GetItem(origin, ORIGIN_VERSION),
                                           PyTuple_GetItem(origin, ORIGIN_NODE),
                                           PyTuple_GetItem(origin, ORIGIN_SLOT))
                            : NULL;
    Py_XDECREF(reference);
    return written;
}

static int note_writer(struct native_context *context, PyObject *tensor, PyObject *origin)
{
    PyObject *base = PyObject_GetAttr(tensor, native_names.base);
    PyObject *written = base == Py_None ? tensor : base;
    PyObject *key = written ? PyLong_FromVoidPtr(written) : NULL;
    PyObject *writer = key ? make_base_origin(context, origin, written) : NULL;
    int status =
        writer ? PyDict_SetItem(native_get(context->graph, GRAPH_WRITERS), key, writer) : -1;
    Py_XDECREF(writer);
    Py_XDECREF(key);
    Py_XDECREF(base);
    return status;
}

PyObject *native_note_written(struct native_context *context, PyObject *tensor, PyObject *node,
                              long slot)
{
    PyObject *origin = native_note_output(context, tensor, node, slot);
    if (origin && note_writer(context, tensor, origin) < 0) {
        Py_CLEAR(origin);
    }
    return origin;
}
