// SPDX-License-Identifier: MIT
#include "seen.h"

#include <stdlib.h>

#include "autograd.h"
#include "graph.h"
#include "map.h"
#include "objects.h"
#include "records.h"
#include "tensors.h"

#define MOST_TO_SEARCH 512 /* values */

/* One step. */
struct step {
    PyObject *number; /* as steps.Steps has it; NULL: none */
    struct native_value *values;
    size_t count, room;
    size_t taken;             /* that Python knows of */
    struct native_map places; /* of the last value at each address */
};
struct native_seen {
    struct step now, before;
};

/* ---- one step -------------------------------------------------------------------------------- */

static bool is_held(const struct native_value *value)
{
    return value->tensor && native_is_defined(value->tensor);
}

static void clear_step(struct step *step)
{
    for (size_t i = 0; i < step->count; i++) {
        if (is_held(&step->values[i])) {
            native_release(step->values[i].tensor);
        }
        Py_DECREF(step->values[i].node);
    }
    native_map_clear(&step->places);
    step->count = step->taken = 0;
    Py_CLEAR(step->number);
}

static void free_step(struct step *step)
{
    clear_step(step);
    free(step->values);
    native_map_free(&step->places);
    *step = (struct step){0};
}

static bool grow_step(struct step *step)
{
    struct native_value *values = native_grow(step->values, &step->room, sizeof(*values));
    step->values = values ? values : step->values;
    return values;
}

static const struct native_value *look_up(const struct step *step, const void *tensor)
{
    uint32_t place = native_map_get(&step->places, tensor);
    bool known = place != NATIVE_NONE && step->values[place].tensor == tensor;
    return known ? &step->values[place] : NULL;
}

static void let_go(struct step *step, const void *tensor)
{
    for (size_t i = 0; look_up(step, tensor) && i < step->count; i++) {
        if (step->values[i].tensor == tensor) {
            native_release(step->values[i].tensor);
            step->values[i].tensor = NULL;
        }
    }
}

/* ---- both ------------------------------------------------------------------------------------ */

/* The table, in which `now` is the running step. NULL: out of memory. */
static struct native_seen *turn_to_now(struct native_context *context)
{
    struct native_seen *seen = context->seen;
    if (!seen && !(seen = context->seen = calloc(1, sizeof(*seen)))) {
        return NULL;
    }
    PyObject *number = native_get(context->steps, STEPS_STEP);
    if (seen->now.number != number) {
        struct step old = seen->before;
        clear_step(&old);
        seen->before = seen->now;
        seen->now = old;
        seen->now.number = Py_NewRef(number);
    }
    return seen;
}

bool native_see(struct native_context *context, void *tensor, PyObject *node, uint32_t slot)
{
    struct native_seen *seen = turn_to_now(context);
    if (!seen || (seen->now.count == seen->now.room && !grow_step(&seen->now))) {
        return false;
    }
    struct step *step = &seen->now;
    struct native_value value = {.tensor = tensor, .node = node, .slot = slot};
    if (native_is_defined(tensor)) {
        if (!native_map_put(&step->places, tensor, (uint32_t)step->count)) {
            return false;
        }
        native_hold(tensor);
        value.writes = native_count_writes(tensor);
    }
    Py_INCREF(node);
    step->values[step->count++] = value;
    return true;
}

const struct native_value *native_find_seen(const struct native_context *context, void *tensor)
{
    const struct native_seen *seen = context->seen;
    bool now = seen && seen->now.number == native_get(context->steps, STEPS_STEP);
    return now ? look_up(&seen->now, tensor) : NULL;
}

void native_forget_seen(struct native_context *context)
{
    if (context->seen) {
        free_step(&context->seen->now);
        free_step(&context->seen->before);
        free(context->seen);
        context->seen = NULL;
    }
}

/* ---- for Python ------------------------------------------------------------------------------ */

/* A reference to nothing: what a weak reference is when its object is gone. */
static PyObject *make_dead_reference(void)
{
    PyObject *nothing = PySet_New(NULL);
    PyObject *reference = nothing ? PyWeakref_NewRef(nothing, NULL) : NULL;
    Py_XDECREF(nothing);
    return reference;
}

/* The value's origin (graph.h), or the record of an empty slot. */
static PyObject *make_record(const struct native_context *context, const struct native_value *value)
{
    if (value->tensor && !native_is_defined(value->tensor)) {
        return Py_NewRef(Py_None);
    }
    bool alive = value->tensor && native_is_alive(value->tensor);
    PyObject *tensor = alive ? native_wrap(value->tensor) : NULL;
    PyObject *reference = tensor             ? native_refer(context, tensor)
                          : PyErr_Occurred() ? NULL
                                             : make_dead_reference();
    Py_XDECREF(tensor);
    return reference ? Py_BuildValue("(NIOI)", reference, value->writes, value->node, value->slot)
                     : NULL;
}

/* The records of the node whose values begin there. *ret: how many they are. */
static PyObject *make_records(const struct native_context *context, const struct step *step,
                              size_t first, size_t *ret)
{
    const struct native_value *values = &step->values[first];
    size_t count = 1;
    while (first + count < step->count && values[count].node == values[0].node &&
           values[count].slot == count) {
        count++;
    }
    PyObject *records = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; records && i < count; i++) {
        PyObject *record = make_record(context, &values[i]);
        if (record) {
            PyTuple_SetItem(records, (Py_ssize_t)i, record); /* steals the reference */
        } else {
            Py_CLEAR(records);
        }
    }
    *ret = count;
    return records;
}

/* Appends (number of the node, step, records) of what was not taken yet. */
static int take_step(const struct native_context *context, struct step *step, PyObject *all)
{
    while (step->taken < step->count) {
        PyObject *node = step->values[step->taken].node;
        size_t count;
        PyObject *records = make_records(context, step, step->taken, &count);
        PyObject *row =
            records ? PyTuple_Pack(3, native_get(node, NODE_ID), step->number, records) : NULL;
        int status = row ? PyList_Append(all, row) : -1;
        Py_XDECREF(row);
        Py_XDECREF(records);
        if (status < 0) {
            return -1;
        }
        step->taken += count;
    }
    return 0;
}

/* 1, 0, or -1: a value of the node with that number was not taken yet, or there are too many to
 * look. */
static int has_untaken(const struct step *step, PyObject *number)
{
    int found = step->count - step->taken > MOST_TO_SEARCH;
    for (size_t i = step->taken; found == 0 && i < step->count; i++) {
        found = PyObject_RichCompareBool(native_get(step->values[i].node, NODE_ID), number, Py_EQ);
    }
    return found;
}

PyObject *native_has_seen(PyObject *object, PyObject *number)
{
    const struct native_seen *seen = ((struct native_context *)object)->seen;
    int found = seen ? has_untaken(&seen->before, number) : 0;
    found = seen && found == 0 ? has_untaken(&seen->now, number) : found;
    return found < 0 ? NULL : Py_NewRef(found ? Py_True : Py_False);
}

PyObject *native_take_seen(PyObject *object, PyObject *none)
{
    const struct native_context *context = (struct native_context *)object;
    struct native_seen *seen = context->seen;
    PyObject *all = PyList_New(0);
    (void)none;
    if (all && seen &&
        (take_step(context, &seen->before, all) < 0 || take_step(context, &seen->now, all) < 0)) {
        Py_CLEAR(all);
    }
    return all;
}

/* What is known of a tensor of this step or the last one; NULL: nothing. */
static const struct native_value *find_latest(const struct native_seen *seen, PyObject *tensor)
{
    void *address = seen ? native_tensor_of(tensor) : NULL;
    const struct native_value *value = address ? look_up(&seen->now, address) : NULL;
    return value || !address ? value : look_up(&seen->before, address);
}

PyObject *native_latest_origin(struct native_context *context, PyObject *tensor, PyObject *origin)
{
    const struct native_value *value = find_latest(context->seen, tensor);
    if (!value) {
        return Py_XNewRef(origin);
    }
    long long writes = origin ? PyLong_AsLongLong(PyTuple_GetItem(origin, ORIGIN_VERSION)) : -1;
    if (PyErr_Occurred()) {
        return NULL;
    }
    return writes >= value->writes ? Py_NewRef(origin) : make_record(context, value);
}

PyObject *native_origin_of(PyObject *object, PyObject *tensor)
{
    PyObject *origin = native_latest_origin((struct native_context *)object, tensor, NULL);
    return origin || PyErr_Occurred() ? origin : Py_NewRef(Py_None);
}

PyObject *native_let_go(PyObject *object, PyObject *address)
{
    struct native_seen *seen = ((struct native_context *)object)->seen;
    const void *tensor = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (seen && tensor) {
        let_go(&seen->now, tensor);
        let_go(&seen->before, tensor);
    }
    return Py_NewRef(Py_None);
}
