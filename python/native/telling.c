// SPDX-License-Identifier: MIT
#include "native.h"

#include <stdint.h>
#include <time.h>

/* ---- which node it is ------------------------------------------------------------------------
 */

/* How many of the family ran in this step. */
static Py_ssize_t counted(PyObject *family, PyObject *step)
{
    PyObject *last = PyObject_GetAttr(family, native_names.step);
    int same = last ? PyObject_RichCompareBool(last, step, Py_EQ) : -1;
    Py_XDECREF(last);
    if (same <= 0) {
        return same;
    }
    PyObject *count = PyObject_GetAttr(family, native_names.count);
    Py_ssize_t ordinal = count ? PyLong_AsSsize_t(count) : -1;
    Py_XDECREF(count);
    return ordinal;
}

static int count_one(PyObject *family, PyObject *step, Py_ssize_t count)
{
    PyObject *number = PyLong_FromSsize_t(count);
    int status = number ? PyObject_SetAttr(family, native_names.count, number) : -1;
    Py_XDECREF(number);
    return status == 0 ? PyObject_SetAttr(family, native_names.step, step) : -1;
}

static PyObject *next_of(PyObject *family, PyObject *step, bool learnt)
{
    Py_ssize_t ordinal = counted(family, step);
    PyObject *nodes = ordinal >= 0 ? PyObject_GetAttr(family, native_names.nodes) : NULL;
    PyObject *node = NULL;
    if (nodes && ordinal < PyList_Size(nodes)) {
        node = Py_XNewRef(PyList_GetItem(nodes, ordinal));
    }
    Py_XDECREF(nodes);
    int known = node ? native_is(node, learnt ? native_names.learnt : native_names.id) : 0;
    if (known <= 0 || count_one(family, step, ordinal + 1) < 0) {
        Py_CLEAR(node);
    }
    return node;
}

PyObject *native_next_known(struct native_context *context, PyObject *key, bool learnt)
{
    PyObject *families = PyObject_GetAttr(context->graph, native_names.families);
    PyObject *family = families ? Py_XNewRef(PyDict_GetItemWithError(families, key)) : NULL;
    PyObject *step = family ? PyObject_GetAttr(context->graph, native_names.step) : NULL;
    PyObject *node = step ? next_of(family, step, learnt) : NULL;
    Py_XDECREF(step);
    Py_XDECREF(family);
    Py_XDECREF(families);
    return node;
}

/* ---- who made a tensor ----------------------------------------------------------------------- */

/* How often it was written in place; 0 for those that do not count (inference mode). */
static PyObject *version_of(PyObject *tensor)
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
    PyObject *version = reference ? version_of(tensor) : NULL;
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
    PyObject *origins = PyObject_GetAttr(context->graph, native_names.origins);
    PyObject *key = origins ? PyLong_FromVoidPtr(tensor) : NULL; /* what id() gives */
    PyObject *origin = key ? origin_of(tensor, node, slot) : NULL;
    if (origin && PyDict_SetItem(origins, key, origin) < 0) {
        Py_CLEAR(origin);
    }
    Py_XDECREF(key);
    Py_XDECREF(origins);
    return origin;
}

static int mark_function(PyObject *function, PyObject *node)
{
    PyObject *mark = PyObject_GetAttr(node, native_names.mark);
    PyObject *metadata = mark ? PyObject_GetAttr(function, native_names.metadata) : NULL;
    int status = metadata ? PyObject_SetItem(metadata, native_names.key, mark) : -1;
    Py_XDECREF(metadata);
    Py_XDECREF(mark);
    return status;
}

int native_mark(struct native_context *context, PyObject *tensor, PyObject *node)
{
    (void)context;
    int wants = native_is(tensor, native_names.requires_grad);
    if (wants <= 0) {
        return wants;
    }
    PyObject *function = PyObject_GetAttr(tensor, native_names.grad_fn);
    int status = !function ? -1 : function != Py_None ? mark_function(function, node) : 0;
    Py_XDECREF(function);
    return status;
}

/* ---- where its outputs lie -------------------------------------------------------------------
 */

/* 1, 0, or -1: the answer of a method, or the value of an attribute. */
static int says(PyObject *tensor, PyObject *name, bool method)
{
    PyObject *answer =
        method ? PyObject_CallMethodObjArgs(tensor, name, NULL) : PyObject_GetAttr(tensor, name);
    int truth = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return truth;
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

/* Its memory holds all of its elements. */
static int is_whole(struct native_context *context, PyObject *tensor, PyObject *form)
{
    long long offset =
        number_of(PyObject_CallMethodObjArgs(tensor, native_names.storage_offset, NULL));
    PyObject *storage = PyObject_CallFunctionObjArgs(context->storage, tensor, NULL);
    long long bytes =
        storage ? number_of(PyObject_CallMethodObjArgs(storage, native_names.nbytes, NULL)) : -1;
    Py_XDECREF(storage);
    long long reach = PyLong_AsLongLong(PyTuple_GetItem(form, NATIVE_FORM_REACH));
    long long size = PyLong_AsLongLong(PyTuple_GetItem(form, NATIVE_FORM_SIZE));
    if (PyErr_Occurred()) {
        return -1;
    }
    return offset >= 0 && reach >= 0 && size > 0 && offset <= (bytes - reach) / size;
}

/* 1, 0, or -1: the tensor is as it was the last time, but for its address. */
static int fits(struct native_context *context, PyObject *tensor, PyObject *form)
{
    if (form == Py_None || PyTuple_Size(form) <= NATIVE_FORM_DENSE ||
        (PyObject *)Py_TYPE(tensor) != PyTuple_GetItem(form, NATIVE_FORM_KIND)) {
        return PyErr_Occurred() ? -1 : 0;
    }
    int same = is_equal(PyObject_GetAttr(tensor, native_names.shape),
                        PyTuple_GetItem(form, NATIVE_FORM_SHAPE));
    if (same > 0) {
        same = is_equal(PyObject_CallMethodObjArgs(tensor, native_names.stride, NULL),
                        PyTuple_GetItem(form, NATIVE_FORM_STRIDES));
    }
    if (same > 0) {
        same = is_equal(PyObject_GetAttr(tensor, native_names.dtype),
                        PyTuple_GetItem(form, NATIVE_FORM_DTYPE));
    }
    if (same > 0) {
        same = says(tensor, native_names.is_cpu, false);
    }
    if (same > 0) {
        int negative = says(tensor, native_names.is_neg, true);
        same = negative < 0 ? -1 : !negative;
    }
    return same > 0 ? is_whole(context, tensor, form) : same;
}

static int place_slot(struct native_context *context, PyObject *places, PyObject *form,
                      PyObject *tensor, Py_ssize_t slot, gradb_tensor *ret)
{
    int same = fits(context, tensor, form);
    if (same < 0) {
        return -1;
    }
    if (!same) {
        PyObject *number = PyLong_FromSsize_t(slot);
        PyObject *done =
            number ? PyObject_CallMethodObjArgs(places, native_names.look, number, tensor, NULL)
                   : NULL;
        Py_XDECREF(number);
        Py_XDECREF(done);
        return done ? 0 : -1;
    }
    PyObject *address = PyObject_CallMethodObjArgs(tensor, native_names.data_ptr, NULL);
    ret->data = address ? PyLong_AsVoidPtr(address) : NULL;
    Py_XDECREF(address);
    return PyErr_Occurred() ? -1 : 0;
}

gradb_tensor *native_structs(PyObject *places)
{
    PyObject *address = PyObject_GetAttr(places, native_names.address);
    gradb_tensor *structs = address ? PyLong_AsVoidPtr(address) : NULL;
    Py_XDECREF(address);
    return structs;
}

/* The same; NULL without an exception: they are not of so many outputs. */
static gradb_tensor *structs_of(PyObject *places, Py_ssize_t count)
{
    PyObject *own = PyObject_GetAttr(places, native_names.count);
    Py_ssize_t slots = own ? PyLong_AsSsize_t(own) : -1;
    Py_XDECREF(own);
    if (slots != count) {
        return NULL;
    }
    return native_structs(places);
}

static int fill(struct native_context *context, PyObject *places, PyObject *tensors,
                gradb_tensor *structs)
{
    PyObject *forms = PyObject_GetAttr(places, native_names.forms);
    if (!forms) {
        return -1;
    }
    int status = 0;
    for (Py_ssize_t slot = 0; status == 0 && slot < PyTuple_Size(tensors); slot++) {
        PyObject *form = Py_XNewRef(PyList_GetItem(forms, slot));
        PyObject *tensor = PyTuple_GetItem(tensors, slot);
        status =
            form && tensor ? place_slot(context, places, form, tensor, slot, &structs[slot]) : -1;
        Py_XDECREF(form);
    }
    Py_DECREF(forms);
    return status;
}

/* ---- telling libgradb ------------------------------------------------------------------------ */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What is spent inside libgradb is nobody's time. */
static int add_away(struct native_context *context, double spent)
{
    PyObject *before = PyObject_GetAttr(context->timing, native_names.away);
    PyObject *after = before ? PyFloat_FromDouble(PyFloat_AsDouble(before) + spent) : NULL;
    int status = after ? PyObject_SetAttr(context->timing, native_names.away, after) : -1;
    Py_XDECREF(before);
    Py_XDECREF(after);
    return status;
}

/* May stand there for long; the interpreter is everybody's meanwhile. */
static int call(struct native_context *context, gradb_node node, const gradb_tensor *structs,
                size_t count, const gradb_same *same)
{
    double began = seconds();
    struct gradb *handle = context->handle;
    PyThreadState *state = PyEval_SaveThread();
    if (!structs) {
        context->did(handle, node);
    } else if (same && context->did_with_same) {
        context->did_with_same(handle, node, structs, count, same);
    } else {
        context->did_with(handle, node, structs, count);
    }
    PyEval_RestoreThread(state);
    return add_away(context, seconds() - began);
}

static int ask_python(PyObject *object, PyObject *method, PyObject *node, PyObject *other)
{
    PyObject *done = PyObject_CallMethodObjArgs(object, method, node, other, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* What gradb_wants answered, when that still holds; -2: it must be asked again. */
static long wants_of(struct native_context *context, PyObject *node)
{
    unsigned changes = __atomic_load_n(&context->handle->changes, __ATOMIC_RELAXED);
    if (number_of(PyObject_GetAttr(node, native_names.asked)) != (long long)changes) {
        return PyErr_Occurred() ? -1 : -2;
    }
    return (long)number_of(PyObject_GetAttr(node, native_names.wants));
}

static int tell_values(struct native_context *context, PyObject *node, gradb_node id,
                       PyObject *tensors, PyObject *before)
{
    PyObject *places = PyObject_GetAttr(node, native_names.places);
    Py_ssize_t count = PyTuple_Size(tensors);
    gradb_tensor *structs = places && places != Py_None ? structs_of(places, count) : NULL;
    int scaling = structs ? native_is(context->scaler, native_names.scaling) : 0;
    int status = PyErr_Occurred() ? -1 : 0;
    if (status == 0 && (!structs || scaling)) {
        status = ask_python(context->telling, native_names.tell, node, tensors);
    } else if (status == 0) {
        gradb_same same[NATIVE_MAX_SAME];
        status = fill(context, places, tensors, structs);
        int known =
            status == 0 && before ? native_same(context, places, structs, count, before, same) : 0;
        status = status < 0 || known < 0
                     ? -1
                     : call(context, id, structs, (size_t)count, known ? same : NULL);
    }
    Py_XDECREF(places);
    return status;
}

static int tell(struct native_context *context, PyObject *node, PyObject *tensors, PyObject *before)
{
    long wants = wants_of(context, node);
    if (wants == -2) {
        return ask_python(context->telling, native_names.tell, node, tensors);
    }
    if (wants <= 0) {
        return wants < 0 ? -1 : 0;
    }
    long long id = number_of(PyObject_GetAttr(node, native_names.id));
    if (id <= 0 || id > UINT32_MAX) {
        return PyErr_Occurred() ? -1 : 0;
    }
    return wants & GRADB_WANT_VALUE ? tell_values(context, node, (gradb_node)id, tensors, before)
                                    : call(context, (gradb_node)id, NULL, 0, NULL);
}

/* ---- a node has run --------------------------------------------------------------------------
 */

/* 1, 0, or -1: nothing but the table of the step need know where its value lies. */
static int is_plain(struct native_context *context, PyObject *step, PyObject *id)
{
    PyObject *live = context->live;
    int same = is_equal(PyObject_GetAttr(live, native_names.step_), step);
    int scales = same > 0 ? native_is(live, native_names.scales) : 0;
    PyObject *scale = same > 0 && !scales ? PyObject_GetAttr(live, native_names.scale) : NULL;
    bool unscaled = scale && PyFloat_AsDouble(scale) == 1.0;
    PyObject *kept = unscaled ? PyObject_GetAttr(live, native_names.kept) : NULL;
    int is_kept = kept ? PySequence_Contains(kept, id) : 0;
    Py_XDECREF(kept);
    Py_XDECREF(scale);
    return PyErr_Occurred() ? -1 : kept && !is_kept;
}

static int remember(struct native_context *context, PyObject *step, PyObject *id, PyObject *records)
{
    int plain = is_plain(context, step, id);
    if (plain < 0) {
        return -1;
    }
    if (!plain) {
        PyObject *done =
            PyObject_CallMethodObjArgs(context->live, native_names.ran_as, id, step, records, NULL);
        Py_XDECREF(done);
        return done ? 0 : -1;
    }
    PyObject *now = PyObject_GetAttr(context->live, native_names.now);
    int status = now ? PyDict_SetItem(now, id, records) : -1;
    Py_XDECREF(now);
    return status;
}

static int note(struct native_context *context, PyObject *node, PyObject *records)
{
    PyObject *step = PyObject_GetAttr(context->steps, native_names.step);
    PyObject *id = step ? PyObject_GetAttr(node, native_names.id) : NULL;
    int status = id && PyObject_SetAttr(node, native_names.step, step) == 0
                     ? remember(context, step, id, records)
                     : -1;
    int aside = status == 0 ? native_is(node, native_names.aside) : 1;
    if (aside == 0) {
        PyObject *ran = PyObject_GetAttr(context->graph, native_names.ran);
        status = ran ? PyList_Append(ran, id) : -1;
        Py_XDECREF(ran);
    }
    int timed = status == 0 ? native_is(context->timing, native_names.on) : 0;
    if (timed > 0) {
        PyObject *done = PyObject_CallMethodObjArgs(context->timing, native_names.ran, id, NULL);
        status = done ? 0 : -1;
        Py_XDECREF(done);
    }
    Py_XDECREF(id);
    Py_XDECREF(step);
    return PyErr_Occurred() ? -1 : status;
}

int native_ran(struct native_context *context, PyObject *node, PyObject *tensors, PyObject *records,
               PyObject *before)
{
    if (note(context, node, records) < 0) {
        return -1;
    }
    int grown = native_is(context->graph, native_names.grown);
    int pending = grown == 0 ? native_is(context->telling, native_names.pending) : 0;
    if (grown < 0 || pending < 0) {
        return -1;
    }
    if (grown || pending) {
        return ask_python(context->telling, native_names.hold, node, tensors);
    }
    bool armed = context->handle && GRADB_IS_ARMED(context->handle);
    return armed ? tell(context, node, tensors, before) : 0;
}
