// SPDX-License-Identifier: MIT
#include "report.h"

#include "autograd.h"
#include "clock.h"
#include "graph.h"
#include "marks.h"
#include "names.h"
#include "objects.h"
#include "places.h"
#include "records.h"
#include "same.h"
#include "seen.h"
#include "tensors.h"

static void call_libgradb(struct native_context *context, gradb_node node,
                          const gradb_tensor *structs, size_t count, const gradb_same *same)
{
    struct gradb *handle = context->handle;
    struct native_wait absence = native_begin_wait();
    if (!structs) {
        context->did(handle, node);
    } else if (same && context->did_with_same) {
        context->did_with_same(handle, node, structs, count, same);
    } else {
        context->did_with(handle, node, structs, count);
    }
    native_end_wait(context->clock, absence);
}

static int report_values(struct native_context *context, PyObject *places, gradb_node id,
                         PyObject *tensors, PyObject *before)
{
    gradb_tensor *structs = native_structs(places);
    Py_ssize_t count = PyTuple_Size(tensors);
    gradb_same same[NATIVE_MAX_SAME];
    if (native_fill_places(context, places, tensors) < 0) {
        return -1;
    }
    int known = native_find_same(context, places, structs, count, before, same);
    if (known >= 0) {
        call_libgradb(context, id, structs, (size_t)count, known ? same : NULL);
    }
    return known < 0 ? -1 : 0;
}

/* What the debugger wants of the node, and where its outputs are, is the same as the last time. */
static int is_settled(struct native_context *context, PyObject *node, Py_ssize_t count)
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
    if (places == Py_None || native_truth(context->scaler, SCALER_SCALING) != 0) {
        return PyErr_Occurred() ? -1 : 0;
    }
    Py_ssize_t slots = PyLong_AsSsize_t(native_get(places, PLACES_COUNT));
    return PyErr_Occurred() ? -1 : slots == count;
}

static int report_node(struct native_context *context, PyObject *node, PyObject *tensors,
                       PyObject *before)
{
    int settled = is_settled(context, node, PyTuple_Size(tensors));
    if (settled <= 0) {
        return settled < 0 ? -1
                           : native_call(context->reporter, native_names.tell, node, tensors, NULL);
    }
    long wants = PyLong_AsLong(native_get(node, NODE_WANTS));
    unsigned long id = PyLong_AsUnsignedLong(native_get(node, NODE_ID));
    if (PyErr_Occurred() || wants == 0) {
        return PyErr_Occurred() ? -1 : 0;
    }
    if (!(wants & GRADB_WANT_VALUE)) {
        call_libgradb(context, (gradb_node)id, NULL, 0, NULL);
        return 0;
    }
    PyObject *places = Py_NewRef(native_get(node, NODE_PLACES));
    int status = report_values(context, places, (gradb_node)id, tensors, before);
    Py_DECREF(places);
    return status;
}

/* ---- what has run in the step ---------------------------------------------------------------- */

void native_begin_trace(struct native_context *context)
{
    PyObject *step = native_get(context->steps, STEPS_STEP);
    if (context->traced != step) {
        native_swap(&context->traced, Py_NewRef(step));
        context->trace = 0;
        context->trace_base = native_next_number();
    }
}

static void add_to_trace(struct native_context *context, PyObject *id)
{
    native_begin_trace(context);
    uint64_t made = native_next_number() - context->trace_base;
    uint64_t mixed = context->trace ^ (PyLong_AsUnsignedLongLongMask(id) << 32) ^ made;
    mixed *= 0x9e3779b97f4a7c15ULL;
    context->trace = mixed ^ (mixed >> 29);
}

/* Only the table of the step needs to know where the value is. */
static int is_plain(struct native_context *context, PyObject *step, PyObject *id)
{
    PyObject *live = context->live;
    int same = PyObject_RichCompareBool(native_get(live, LIVE_STEP), step, Py_EQ);
    int scales = same > 0 ? native_truth(live, LIVE_SCALES) : 1;
    double scale = scales == 0 ? PyFloat_AsDouble(native_get(live, LIVE_SCALE)) : 0.0;
    int kept = scale == 1.0 ? PySequence_Contains(native_get(live, LIVE_KEPT), id) : 1;
    return PyErr_Occurred() ? -1 : !kept;
}

/* Like live.Live.ran_as. */
static int note_outputs(struct native_context *context, PyObject *step, PyObject *id,
                        PyObject *records)
{
    int plain = is_plain(context, step, id);
    if (plain < 0) {
        return -1;
    }
    return plain ? PyDict_SetItem(native_get(context->live, LIVE_NOW), id, records)
                 : native_call(context->live, native_names.ran_as, id, step, records);
}

/* records: NULL where the outputs were noted already. */
static int note_ran(struct native_context *context, PyObject *node, PyObject *records)
{
    PyObject *step = Py_NewRef(native_get(context->steps, STEPS_STEP));
    PyObject *id = Py_NewRef(native_get(node, NODE_ID));
    native_set(node, NODE_STEP, step);
    add_to_trace(context, id);
    int status = records ? note_outputs(context, step, id, records) : 0;
    int aside = status == 0 ? native_truth(node, NODE_ASIDE) : 1;
    if (aside == 0) {
        status = PyList_Append(native_get(context->graph, GRAPH_RAN), id);
    }
    if (status == 0 && context->clock->on) {
        size_t number = PyLong_AsSize_t(id);
        status = PyErr_Occurred() ? -1 : native_add_op(context->clock, number);
    }
    Py_DECREF(id);
    Py_DECREF(step);
    return PyErr_Occurred() ? -1 : status;
}

/* ---- a node has run -------------------------------------------------------------------------- */

int native_ran(struct native_context *context, PyObject *node, PyObject *tensors, PyObject *records,
               PyObject *before)
{
    if (note_ran(context, node, records) < 0) {
        return -1;
    }
    int grown = native_truth(context->graph, GRAPH_GROWN);
    int held = grown == 0 ? native_truth(context->reporter, REPORTER_PENDING) : grown;
    if (held != 0) {
        return held < 0 ? -1
                        : native_call(context->reporter, native_names.hold, node, tensors, NULL);
    }
    bool armed = context->handle && GRADB_IS_ARMED(context->handle);
    return armed ? report_node(context, node, tensors, before) : 0;
}

/* Nobody needs the tensors of its outputs. */
static int is_unasked(struct native_context *context, PyObject *node)
{
    int held = native_truth(context->graph, GRAPH_GROWN);
    held = held == 0 ? native_truth(context->reporter, REPORTER_PENDING) : held;
    held = held == 0 ? native_truth(context->live, LIVE_SCALES) : held;
    if (held == 0 && native_truth(context->live, LIVE_KEPT) != 0) {
        held = PySequence_Contains(native_get(context->live, LIVE_KEPT), native_get(node, NODE_ID));
    }
    if (held != 0 || PyFloat_AsDouble(native_get(context->live, LIVE_SCALE)) != 1.0) {
        return PyErr_Occurred() ? -1 : 0;
    }
    return 1;
}

/* Its values are wanted: then it has places. */
static bool are_wanted(PyObject *node)
{
    long wants = native_get_int(node, NODE_WANTS);
    return wants > 0 && (wants & GRADB_WANT_VALUE);
}

int native_can_run_unwrapped(struct native_context *context, PyObject *node,
                             const struct native_tensors *outputs)
{
    int unasked = is_unasked(context, node);
    if (unasked <= 0 || !GRADB_IS_ARMED(context->handle)) {
        return unasked;
    }
    int settled = is_settled(context, node, (Py_ssize_t)native_tensor_count(outputs));
    return settled > 0 && are_wanted(node)
               ? native_fill_unwrapped(context, native_get(node, NODE_PLACES), outputs)
               : settled;
}

static int report_unwrapped(struct native_context *context, PyObject *node,
                            const struct native_tensors *before)
{
    long wants = native_get_int(node, NODE_WANTS);
    gradb_node id = (gradb_node)native_get_int(node, NODE_ID);
    if (PyErr_Occurred() || wants == 0) {
        return PyErr_Occurred() ? -1 : 0;
    }
    if (!(wants & GRADB_WANT_VALUE)) {
        call_libgradb(context, id, NULL, 0, NULL);
        return 0;
    }
    PyObject *places = Py_NewRef(native_get(node, NODE_PLACES));
    size_t count = (size_t)native_get_int(places, PLACES_COUNT);
    gradb_same same[NATIVE_MAX_SAME];
    int known = native_find_same_unwrapped(context, places, count, before, same);
    if (known >= 0) {
        call_libgradb(context, id, native_structs(places), count, known ? same : NULL);
    }
    Py_DECREF(places);
    return known < 0 ? -1 : 0;
}

int native_ran_unwrapped(struct native_context *context, PyObject *node,
                         const struct native_tensors *outputs, const struct native_tensors *before)
{
    if (note_ran(context, node, NULL) < 0) {
        return -1;
    }
    for (size_t slot = 0; slot < native_tensor_count(outputs); slot++) {
        void *tensor = outputs->begin[slot];
        native_see(context, tensor, node, (uint32_t)slot);
        if (native_is_defined(tensor) && native_mark_unwrapped(context, tensor, node) < 0) {
            return -1;
        }
    }
    return GRADB_IS_ARMED(context->handle) ? report_unwrapped(context, node, before) : 0;
}

int native_ran_one(struct native_context *context, PyObject *node, PyObject *tensor,
                   PyObject *before)
{
    PyObject *origin = native_note_output(context, tensor, node, 0);
    PyObject *records = origin ? PyTuple_Pack(1, origin) : NULL;
    PyObject *tensors = records ? PyTuple_Pack(1, tensor) : NULL;
    int status = tensors ? native_ran(context, node, tensors, records, before) : -1;
    Py_XDECREF(tensors);
    Py_XDECREF(records);
    Py_XDECREF(origin);
    return status;
}

/* The record that live.Live.ran makes of a tensor or None. */
static PyObject *make_record(const struct native_context *context, PyObject *tensor)
{
    if (tensor == Py_None) {
        return Py_NewRef(Py_None);
    }
    PyObject *reference = native_refer(context, tensor);
    PyObject *version = reference ? native_version(tensor) : NULL;
    PyObject *record = version ? PyTuple_Pack(2, reference, version) : NULL;
    Py_XDECREF(version);
    Py_XDECREF(reference);
    return record;
}

static PyObject *make_records(const struct native_context *context, PyObject *tensors)
{
    Py_ssize_t count = PyTuple_Size(tensors);
    PyObject *records = PyTuple_New(count);
    for (Py_ssize_t slot = 0; records && slot < count; slot++) {
        PyObject *record = make_record(context, PyTuple_GetItem(tensors, slot));
        if (record) {
            PyTuple_SetItem(records, slot, record); /* steals the reference */
        } else {
            Py_CLEAR(records);
        }
    }
    return records;
}

static int report_ran(struct native_context *context, PyObject *node, PyObject *tensors,
                      PyObject *records)
{
    PyObject *before = PyTuple_New(0);
    int status = before ? native_ran(context, node, tensors, records, before) : -1;
    Py_XDECREF(before);
    return status;
}

int native_ran_anew(struct native_context *context, PyObject *node, PyObject *tensors)
{
    PyObject *records = make_records(context, tensors);
    int status = records ? report_ran(context, node, tensors, records) : -1;
    Py_XDECREF(records);
    return status;
}

PyObject *native_report_ran(PyObject *module, PyObject *args)
{
    PyObject *node, *given, *told;
    struct native_context *context;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!OO:ran", native_context_type, &context,
                          native_kinds[NATIVE_NODE], &node, &given, &told)) {
        return NULL;
    }
    PyObject *tensors = PySequence_Tuple(given);
    PyObject *records = tensors && told != Py_None ? PySequence_Tuple(told) : NULL;
    int status = records                      ? report_ran(context, node, tensors, records)
                 : tensors && told == Py_None ? native_ran_anew(context, node, tensors)
                                              : -1;
    Py_XDECREF(records);
    Py_XDECREF(tensors);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}
