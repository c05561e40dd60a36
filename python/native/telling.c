// SPDX-License-Identifier: MIT
#include "native.h"

#include <stdint.h>

/* ---- which node it is ------------------------------------------------------------------------ */

/* How many of the family ran in this step. */
static Py_ssize_t counted(PyObject *family, PyObject *step)
{
    int same = PyObject_RichCompareBool(native_get(family, FAMILY_STEP), step, Py_EQ);
    return same <= 0 ? same : PyLong_AsSsize_t(native_get(family, FAMILY_COUNT));
}

static int count_one(PyObject *family, PyObject *step, Py_ssize_t count)
{
    if (native_put(family, FAMILY_COUNT, PyLong_FromSsize_t(count)) < 0) {
        return -1;
    }
    native_set(family, FAMILY_STEP, step);
    return 0;
}

static PyObject *next_of(PyObject *family, PyObject *step, bool learnt)
{
    Py_ssize_t ordinal = counted(family, step);
    PyObject *nodes = native_get(family, FAMILY_NODES);
    if (ordinal < 0 || ordinal >= PyList_Size(nodes)) {
        return NULL;
    }
    PyObject *node = PyList_GetItem(nodes, ordinal);
    int known = native_is(node, learnt ? NODE_LEARNT : NODE_ID);
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
    return family && novel == 0 ? next_of(family, step, learnt) : NULL;
}

/* ---- who made a tensor ----------------------------------------------------------------------- */

PyObject *native_version(PyObject *tensor)
{
    PyObject *version = PyObject_GetAttr(tensor, native_names.version);
    if (!version && PyErr_ExceptionMatches(PyExc_RuntimeError)) {
        PyErr_Clear();
        version = PyLong_FromLong(0);
    }
    return version;
}

static PyObject *origin_of(PyObject *tensor, PyObject *node, long slot)
{
    PyObject *reference = PyWeakref_NewRef(tensor, NULL);
    PyObject *version = reference ? native_version(tensor) : NULL;
    PyObject *number = version ? PyLong_FromLong(slot) : NULL;
    PyObject *origin = number ? PyTuple_Pack(4, reference, version, node, number) : NULL;
    Py_XDECREF(number);
    Py_XDECREF(version);
    Py_XDECREF(reference);
    return origin;
}

PyObject *native_produced(struct native_context *context, PyObject *tensor, PyObject *node,
                          long slot)
{
    PyObject *key = PyLong_FromVoidPtr(tensor); /* what id() gives */
    PyObject *origin = key ? origin_of(tensor, node, slot) : NULL;
    if (origin && PyDict_SetItem(native_get(context->graph, GRAPH_ORIGINS), key, origin) < 0) {
        Py_CLEAR(origin);
    }
    Py_XDECREF(key);
    return origin;
}

/* The origin as it is of a tensor, for what its memory belongs to. */
static PyObject *origin_of_base(PyObject *origin, PyObject *base)
{
    PyObject *reference = PyWeakref_NewRef(base, NULL);
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
    PyObject *writer = key ? origin_of_base(origin, written) : NULL;
    int status =
        writer ? PyDict_SetItem(native_get(context->graph, GRAPH_WRITERS), key, writer) : -1;
    Py_XDECREF(writer);
    Py_XDECREF(key);
    Py_XDECREF(base);
    return status;
}

PyObject *native_wrote(struct native_context *context, PyObject *tensor, PyObject *node, long slot)
{
    PyObject *origin = native_produced(context, tensor, node, slot);
    if (origin && note_writer(context, tensor, origin) < 0) {
        Py_CLEAR(origin);
    }
    return origin;
}

int native_mark(PyObject *tensor, PyObject *node)
{
    PyObject *function = PyObject_GetAttr(tensor, native_names.grad_fn);
    if (!function || function == Py_None) {
        Py_XDECREF(function);
        return function ? 0 : -1;
    }
    PyObject *metadata = PyObject_GetAttr(function, native_names.metadata);
    int status =
        metadata ? PyObject_SetItem(metadata, native_names.key, native_get(node, NODE_MARK)) : -1;
    Py_XDECREF(metadata);
    Py_DECREF(function);
    return status;
}

/* ---- where its outputs lie ------------------------------------------------------------------- */

/* 1, 0, or -1 */
static int truth_of(PyObject *answer)
{
    int truth = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return truth;
}

int native_asks(PyObject *tensor, PyObject *method)
{
    return truth_of(PyObject_CallMethodObjArgs(tensor, method, NULL));
}

static long long number_of(PyObject *value)
{
    long long number = value ? PyLong_AsLongLong(value) : -1;
    Py_XDECREF(value);
    return number;
}

static int is_equal(PyObject *value, PyObject *expected)
{
    int same = value ? PyObject_RichCompareBool(value, expected, Py_EQ) : -1;
    Py_XDECREF(value);
    return same;
}

bool native_is_inside(long long offset, long long bytes, long long reach, long long size)
{
    return offset >= 0 && reach >= 0 && reach <= bytes && size > 0 &&
           offset <= (bytes - reach) / size;
}

/* Its memory holds all of its elements. */
static int is_whole(struct native_context *context, PyObject *tensor, long long reach,
                    long long size)
{
    long long offset =
        number_of(PyObject_CallMethodObjArgs(tensor, native_names.storage_offset, NULL));
    PyObject *storage = PyObject_CallFunctionObjArgs(context->storage, tensor, NULL);
    long long bytes =
        storage ? number_of(PyObject_CallMethodObjArgs(storage, native_names.nbytes, NULL)) : -1;
    Py_XDECREF(storage);
    return PyErr_Occurred() ? -1 : native_is_inside(offset, bytes, reach, size);
}

/* 1, 0, or -1: it is as it was known, all of it there. */
static int is_as_known(struct native_context *context, PyObject *tensor, PyObject *form,
                       long long reach, long long size)
{
    int same =
        is_equal(PyObject_GetAttr(tensor, native_names.shape), PyTuple_GetItem(form, FORM_SHAPE));
    if (same > 0) {
        same = is_equal(PyObject_CallMethodObjArgs(tensor, native_names.stride, NULL),
                        PyTuple_GetItem(form, FORM_STRIDES));
    }
    if (same > 0) {
        same = is_equal(PyObject_GetAttr(tensor, native_names.dtype),
                        PyTuple_GetItem(form, FORM_DTYPE));
    }
    if (same > 0) {
        same = truth_of(PyObject_GetAttr(tensor, native_names.is_cpu));
    }
    return same > 0 ? is_whole(context, tensor, reach, size) : same;
}

static int take_address(PyObject *tensor, const void **ret)
{
    PyObject *address = PyObject_CallMethodObjArgs(tensor, native_names.data_ptr, NULL);
    *ret = address ? PyLong_AsVoidPtr(address) : NULL;
    Py_XDECREF(address);
    return PyErr_Occurred() ? -1 : 1;
}

int native_place(struct native_context *context, PyObject *tensor, PyObject *form,
                 gradb_tensor *ret)
{
    if (form == Py_None || PyTuple_Size(form) <= FORM_DENSE ||
        (PyObject *)Py_TYPE(tensor) != PyTuple_GetItem(form, FORM_KIND)) {
        return PyErr_Occurred() ? -1 : 0;
    }
    long long reach = PyLong_AsLongLong(PyTuple_GetItem(form, FORM_REACH));
    long long size = PyLong_AsLongLong(PyTuple_GetItem(form, FORM_SIZE));
    int negative = PyErr_Occurred() ? -1 : native_asks(tensor, native_names.is_neg);
    if (negative != 0) {
        return negative < 0 ? -1 : 0;
    }
    if (native_can_read(ret->dtype)) {
        return native_read(tensor, ret, reach, size, &ret->data);
    }
    int same = is_as_known(context, tensor, form, reach, size);
    return same > 0 ? take_address(tensor, &ret->data) : same;
}

static int place_slot(struct native_context *context, PyObject *places, PyObject *form,
                      PyObject *tensor, Py_ssize_t slot, gradb_tensor *ret)
{
    bool none = tensor == Py_None && form == Py_None && ret->dtype == 0; /* as it was */
    int placed = none ? 1 : native_place(context, tensor, form, ret);
    if (placed != 0) {
        return placed < 0 ? -1 : 0;
    }
    PyObject *number = PyLong_FromSsize_t(slot);
    int status = number ? native_call(places, native_names.look, number, tensor, NULL) : -1;
    Py_XDECREF(number);
    return status;
}

gradb_tensor *native_structs(PyObject *places)
{
    return PyLong_AsVoidPtr(native_get(places, PLACES_ADDRESS));
}

/* A values.Places gets the addresses of this run's outputs. */
static int fill(struct native_context *context, PyObject *places, PyObject *tensors,
                gradb_tensor *structs)
{
    int status = structs ? 0 : -1;
    for (Py_ssize_t slot = 0; status == 0 && slot < PyTuple_Size(tensors); slot++) {
        PyObject *form = Py_XNewRef(PyList_GetItem(native_get(places, PLACES_FORMS), slot));
        PyObject *tensor = PyTuple_GetItem(tensors, slot);
        status =
            form && tensor ? place_slot(context, places, form, tensor, slot, &structs[slot]) : -1;
        Py_XDECREF(form);
    }
    return status;
}

/* ---- telling libgradb ------------------------------------------------------------------------ */

static void call(struct native_context *context, gradb_node node, const gradb_tensor *structs,
                 size_t count, const gradb_same *same)
{
    struct gradb *handle = context->handle;
    struct native_absence absence = native_leave();
    if (!structs) {
        context->did(handle, node);
    } else if (same && context->did_with_same) {
        context->did_with_same(handle, node, structs, count, same);
    } else {
        context->did_with(handle, node, structs, count);
    }
    native_return(context->clock, absence);
}

static int tell_with(struct native_context *context, PyObject *places, gradb_node id,
                     PyObject *tensors, PyObject *before)
{
    gradb_tensor *structs = native_structs(places);
    Py_ssize_t count = PyTuple_Size(tensors);
    gradb_same same[NATIVE_MAX_SAME];
    if (fill(context, places, tensors, structs) < 0) {
        return -1;
    }
    int known = native_same(context, places, structs, count, before, same);
    if (known >= 0) {
        call(context, id, structs, (size_t)count, known ? same : NULL);
    }
    return known < 0 ? -1 : 0;
}

/* 1, 0, or -1: what was asked of the node, and where its outputs lie, is as it was the last time.
 */
static int is_settled(struct native_context *context, PyObject *node, PyObject *tensors)
{
    unsigned changes = __atomic_load_n(&context->handle->changes, __ATOMIC_RELAXED);
    if (PyLong_AsLongLong(native_get(node, NODE_ASKED)) != (long long)changes) {
        return PyErr_Occurred() ? -1 : 0;
    }
    long wants = PyLong_AsLong(native_get(node, NODE_WANTS));
    PyObject *places = native_get(node, NODE_PLACES);
    if (wants <= 0 || !(wants & GRADB_WANT_VALUE)) {
        return PyErr_Occurred() ? -1 : 1;
    }
    if (places == Py_None || native_is(context->scaler, SCALER_SCALING) != 0) {
        return PyErr_Occurred() ? -1 : 0;
    }
    Py_ssize_t slots = PyLong_AsSsize_t(native_get(places, PLACES_COUNT));
    return PyErr_Occurred() ? -1 : slots == PyTuple_Size(tensors);
}

static int tell(struct native_context *context, PyObject *node, PyObject *tensors, PyObject *before)
{
    int settled = is_settled(context, node, tensors);
    if (settled <= 0) {
        return settled < 0 ? -1
                           : native_call(context->telling, native_names.tell, node, tensors, NULL);
    }
    long wants = PyLong_AsLong(native_get(node, NODE_WANTS));
    unsigned long id = PyLong_AsUnsignedLong(native_get(node, NODE_ID));
    if (PyErr_Occurred() || wants == 0) {
        return PyErr_Occurred() ? -1 : 0;
    }
    if (!(wants & GRADB_WANT_VALUE)) {
        call(context, (gradb_node)id, NULL, 0, NULL);
        return 0;
    }
    PyObject *places = Py_NewRef(native_get(node, NODE_PLACES));
    int status = tell_with(context, places, (gradb_node)id, tensors, before);
    Py_DECREF(places);
    return status;
}

/* ---- a node has run -------------------------------------------------------------------------- */

/* 1, 0, or -1: nothing but the table of the step need know where its value lies. */
static int is_plain(struct native_context *context, PyObject *step, PyObject *id)
{
    PyObject *live = context->live;
    int same = PyObject_RichCompareBool(native_get(live, LIVE_STEP), step, Py_EQ);
    int scales = same > 0 ? native_is(live, LIVE_SCALES) : 1;
    double scale = scales == 0 ? PyFloat_AsDouble(native_get(live, LIVE_SCALE)) : 0.0;
    int kept = scale == 1.0 ? PySequence_Contains(native_get(live, LIVE_KEPT), id) : 1;
    return PyErr_Occurred() ? -1 : !kept;
}

/* As values.Live.ran_as. */
static int remember(struct native_context *context, PyObject *step, PyObject *id, PyObject *records)
{
    int plain = is_plain(context, step, id);
    if (plain < 0) {
        return -1;
    }
    return plain ? PyDict_SetItem(native_get(context->live, LIVE_NOW), id, records)
                 : native_call(context->live, native_names.ran_as, id, step, records);
}

static int note(struct native_context *context, PyObject *node, PyObject *records)
{
    PyObject *step = Py_NewRef(native_get(context->steps, STEPS_STEP));
    PyObject *id = Py_NewRef(native_get(node, NODE_ID));
    native_set(node, NODE_STEP, step);
    int status = remember(context, step, id, records);
    int aside = status == 0 ? native_is(node, NODE_ASIDE) : 1;
    if (aside == 0) {
        status = PyList_Append(native_get(context->graph, GRAPH_RAN), id);
    }
    if (status == 0 && context->clock->on) {
        status = native_call((PyObject *)context->clock, native_names.ran, id, NULL, NULL);
    }
    Py_DECREF(id);
    Py_DECREF(step);
    return PyErr_Occurred() ? -1 : status;
}

int native_ran(struct native_context *context, PyObject *node, PyObject *tensors, PyObject *records,
               PyObject *before)
{
    if (note(context, node, records) < 0) {
        return -1;
    }
    int grown = native_is(context->graph, GRAPH_GROWN);
    int held = grown == 0 ? native_is(context->telling, TELLING_PENDING) : grown;
    if (held != 0) {
        return held < 0 ? -1
                        : native_call(context->telling, native_names.hold, node, tensors, NULL);
    }
    bool armed = context->handle && GRADB_IS_ARMED(context->handle);
    return armed ? tell(context, node, tensors, before) : 0;
}

/* As values.Live.ran has it of a tensor or None. */
static PyObject *record_of(PyObject *tensor)
{
    if (tensor == Py_None) {
        return Py_NewRef(Py_None);
    }
    PyObject *reference = PyWeakref_NewRef(tensor, NULL);
    PyObject *version = reference ? native_version(tensor) : NULL;
    PyObject *record = version ? PyTuple_Pack(2, reference, version) : NULL;
    Py_XDECREF(version);
    Py_XDECREF(reference);
    return record;
}

static PyObject *records_of(PyObject *tensors)
{
    Py_ssize_t count = PyTuple_Size(tensors);
    PyObject *records = PyTuple_New(count);
    for (Py_ssize_t slot = 0; records && slot < count; slot++) {
        PyObject *record = record_of(PyTuple_GetItem(tensors, slot));
        if (record) {
            PyTuple_SetItem(records, slot, record); /* takes it over */
        } else {
            Py_CLEAR(records);
        }
    }
    return records;
}

PyObject *native_tell_ran(PyObject *module, PyObject *args)
{
    PyObject *context, *node, *given, *told;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO:ran", &context, &node, &given, &told)) {
        return NULL;
    }
    if (!PyObject_TypeCheck(context, native_context_type) || !native_is_a(node, NATIVE_NODE)) {
        PyErr_SetString(PyExc_TypeError, "ran() takes a Context and a Node");
        return NULL;
    }
    PyObject *tensors = PySequence_Tuple(given);
    PyObject *records = !tensors          ? NULL
                        : told == Py_None ? records_of(tensors)
                                          : PySequence_Tuple(told);
    PyObject *before = records ? PyTuple_New(0) : NULL;
    int status =
        before ? native_ran((struct native_context *)context, node, tensors, records, before) : -1;
    Py_XDECREF(before);
    Py_XDECREF(records);
    Py_XDECREF(tensors);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}
