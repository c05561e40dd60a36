// SPDX-License-Identifier: MIT
#include "same.h"

#include "graph.h"
#include "names.h"
#include "objects.h"
#include "places.h"
#include "records.h"
#include "seen.h"
#include "tensors.h"

/* The origin (see graph.h) of a tensor in this step; NULL without an exception: it has none. */
static PyObject *find_origin(struct native_context *context, PyObject *tensor)
{
    PyObject *key = PyLong_FromVoidPtr(tensor);
    PyObject *origin =
        key ? PyDict_GetItemWithError(native_get(context->graph, GRAPH_ORIGINS), key) : NULL;
    Py_XINCREF(origin); /* asking the tensor may run Python */
    Py_XDECREF(key);
    return origin;
}

/* The tensor is the one that the origin was made for, and was not written since. */
static int is_unchanged(PyObject *origin, PyObject *tensor)
{
    if (PyWeakref_GetObject(PyTuple_GetItem(origin, ORIGIN_TENSOR)) != tensor) {
        return PyErr_Occurred() ? -1 : 0;
    }
    const void *address = native_knows_nodes() ? native_tensor_of(tensor) : NULL;
    if (address && native_counts_writes(address)) {
        return native_take_equal(native_version(tensor), PyTuple_GetItem(origin, ORIGIN_VERSION));
    }
    PyObject *version = PyObject_GetAttr(tensor, native_names.version);
    if (!version && PyErr_ExceptionMatches(PyExc_RuntimeError)) {
        PyErr_Clear(); /* its writes are not counted */
        return 0;
    }
    return native_take_equal(version, PyTuple_GetItem(origin, ORIGIN_VERSION));
}

/* Both are all of the same stretch of memory, without gaps. */
static int is_same_memory(PyObject *form, const gradb_tensor *a, PyObject *other,
                          const gradb_tensor *b)
{
    if (!form || !other || form == Py_None || other == Py_None || !a->data || a->data != b->data ||
        a->dtype != b->dtype) {
        return PyErr_Occurred() ? -1 : 0;
    }
    int dense = PyObject_IsTrue(PyTuple_GetItem(form, FORM_DENSE));
    if (dense > 0) {
        dense = PyObject_IsTrue(PyTuple_GetItem(other, FORM_DENSE));
    }
    return dense > 0 ? PyObject_RichCompareBool(PyTuple_GetItem(form, FORM_REACH),
                                                PyTuple_GetItem(other, FORM_REACH), Py_EQ)
                     : dense;
}

/* The same for an output and the slot of the node that an origin names, whose places were reported
 * in this step. */
static int is_same_output(PyObject *form, const gradb_tensor *output, PyObject *node, long slot)
{
    PyObject *places = native_get(node, NODE_PLACES);
    if (places == Py_None) {
        return 0;
    }
    PyObject *forms = native_get(places, PLACES_FORMS);
    if (slot < 0 || slot >= PyList_Size(forms)) {
        return 0;
    }
    const gradb_tensor *structs = native_structs(places);
    return structs ? is_same_memory(form, output, PyList_GetItem(forms, slot), &structs[slot]) : -1;
}

static int compare_to(PyObject *form, const gradb_tensor *output, PyObject *origin,
                      PyObject *tensor, gradb_same *ret)
{
    PyObject *node = PyTuple_GetItem(origin, ORIGIN_NODE);
    long slot = PyLong_AsLong(PyTuple_GetItem(origin, ORIGIN_SLOT));
    if (PyErr_Occurred() || !native_is_a(node, NATIVE_NODE)) {
        return PyErr_Occurred() ? -1 : 0;
    }
    int same = is_same_output(form, output, node, slot);
    if (same > 0) {
        same = is_unchanged(origin, tensor);
    }
    if (same > 0) {
        ret->node = (gradb_node)PyLong_AsUnsignedLong(native_get(node, NODE_ID));
        ret->slot = (unsigned)slot;
    }
    return PyErr_Occurred() ? -1 : same;
}

/* Looks for one output among the tensors before. */
static int find_among(struct native_context *context, PyObject *form, const gradb_tensor *output,
                      PyObject *before, gradb_same *ret)
{
    int found = 0;
    for (Py_ssize_t i = 0; found == 0 && i < PyTuple_Size(before) && i < NATIVE_MAX_SAME; i++) {
        PyObject *tensor = PyTuple_GetItem(before, i);
        if ((PyObject *)Py_TYPE(tensor) != context->tensor) {
            continue;
        }
        PyObject *origin = find_origin(context, tensor);
        found = origin ? compare_to(form, output, origin, tensor, ret) : PyErr_Occurred() ? -1 : 0;
        Py_XDECREF(origin);
    }
    return found;
}

/* Memory was handed out in this step, so writes to it may go unnoticed. */
static int has_leaked(struct native_context *context)
{
    return PyObject_RichCompareBool(native_get(context->graph, GRAPH_LEAKED),
                                    native_get(context->graph, GRAPH_STEP), Py_EQ);
}

int native_find_same(struct native_context *context, PyObject *places, const gradb_tensor *structs,
                     Py_ssize_t count, PyObject *before, gradb_same ret[NATIVE_MAX_SAME])
{
    int leaked = context->did_with_same && count <= NATIVE_MAX_SAME ? has_leaked(context) : 1;
    if (leaked != 0) {
        return leaked < 0 ? -1 : 0;
    }
    PyObject *forms = native_get(places, PLACES_FORMS);
    int any = 0;
    for (Py_ssize_t slot = 0; any >= 0 && slot < count; slot++) {
        ret[slot] = (gradb_same){0};
        PyObject *form = Py_XNewRef(PyList_GetItem(forms, slot));
        int found = !form ? -1
                    : form == Py_None
                        ? 0
                        : find_among(context, form, &structs[slot], before, &ret[slot]);
        Py_XDECREF(form);
        any = found < 0 ? -1 : any || found;
    }
    return any;
}

/* ---- without Python objects ------------------------------------------------------------------ */

/* Looks for one output among the tensors before. */
static int find_among_seen(struct native_context *context, PyObject *form,
                           const gradb_tensor *output, const struct native_tensors *before,
                           gradb_same *ret)
{
    int found = 0;
    for (size_t i = 0; found == 0 && i < native_tensor_count(before) && i < NATIVE_MAX_SAME; i++) {
        void *tensor = before->begin[i];
        const struct native_value *value =
            native_is_defined(tensor) ? native_find_seen(context, tensor) : NULL;
        if (!value || value->writes != native_count_writes(tensor)) {
            continue;
        }
        found = is_same_output(form, output, value->node, value->slot);
        if (found > 0) {
            ret->node = (gradb_node)native_get_int(value->node, NODE_ID);
            ret->slot = value->slot;
        }
    }
    return PyErr_Occurred() ? -1 : found;
}

int native_find_same_unwrapped(struct native_context *context, PyObject *places, size_t count,
                               const struct native_tensors *before, gradb_same ret[NATIVE_MAX_SAME])
{
    int leaked = context->did_with_same && count <= NATIVE_MAX_SAME ? has_leaked(context) : 1;
    if (leaked != 0) {
        return leaked < 0 ? -1 : 0;
    }
    const gradb_tensor *structs = native_structs(places);
    PyObject *forms = native_get(places, PLACES_FORMS);
    int any = 0;
    for (size_t slot = 0; any >= 0 && slot < count; slot++) {
        ret[slot] = (gradb_same){0};
        PyObject *form = PyList_GetItem(forms, (Py_ssize_t)slot);
        int found = !form || form == Py_None
                        ? 0
                        : find_among_seen(context, form, &structs[slot], before, &ret[slot]);
        any = found < 0 || PyErr_Occurred() ? -1 : any || found;
    }
    return any;
}
