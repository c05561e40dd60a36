// SPDX-License-Identifier: MIT
#include "marks.h"

#include <stdlib.h>

#include "autograd.h"
#include "map.h"
#include "names.h"
#include "objects.h"
#include "records.h"
#include "tensors.h"

#define STEPS 16 /* that are kept */

/* The number tells a grad_fn from another one that is later at the same address. */
struct mark {
    uint64_t number;
    PyObject *node; /* graph.Node; borrowed: the graph keeps its nodes */
};
struct step {
    PyObject *number; /* as steps.Steps has it; NULL: none */
    struct mark *marks;
    size_t count, room;
    struct native_map places; /* of the last mark of each grad_fn, by the node's address */
};
struct native_marks {
    struct step steps[STEPS];
    size_t now;
};

/* ---- one step -------------------------------------------------------------------------------- */

static bool grow_step(struct step *step)
{
    struct mark *marks = native_grow(step->marks, &step->room, sizeof(*marks));
    step->marks = marks ? marks : step->marks;
    return marks;
}

static void clear_step(struct step *step)
{
    Py_CLEAR(step->number);
    native_map_clear(&step->places);
    step->count = 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The running step's; NULL: out of memory. */
static struct step *turn_to_now(struct native_context *context)
{
    struct native_marks *marks = context->marks;
    if (!marks && !(marks = context->marks = calloc(1, sizeof(*marks)))) {
        return NULL;
    }
    PyObject *number = native_get(context->steps, STEPS_STEP);
    if (marks->steps[marks->now].number != number) {
        marks->now = (marks->now + 1) % STEPS;
        clear_step(&marks->steps[marks->now]);
        marks->steps[marks->now].number = Py_NewRef(number);
    }
    struct step *step = &marks->steps[marks->now];
    return step->count < step->room || grow_step(step) ? step : NULL;
}

static bool put_mark(struct native_context *context, const void *function, PyObject *node)
{
    struct step *step = turn_to_now(context);
    if (!step || !native_map_put(&step->places, function, (uint32_t)step->count)) {
        return false;
    }
    step->marks[step->count++] = (struct mark){native_node_number(function), node};
    return true;
}

static PyObject *find_mark(const struct native_marks *marks, const void *function)
{
    uint64_t number = native_node_number(function);
    for (size_t age = 0; age < STEPS; age++) {
        const struct step *step = &marks->steps[(marks->now + STEPS - age) % STEPS];
        uint32_t place = native_map_get(&step->places, function);
        if (place != NATIVE_NONE && step->marks[place].number == number) {
            return step->marks[place].node;
        }
    }
    return NULL;
}

static int mark_metadata(PyObject *tensor, PyObject *node)
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

int native_mark_unwrapped(struct native_context *context, void *tensor, PyObject *node)
{
    const void *function = native_grad_fn(tensor);
    if (!function || (!native_is_custom(function) && put_mark(context, function, node))) {
        return 0;
    }
    PyObject *object = native_wrap(tensor);
    int status = object ? mark_metadata(object, node) : -1;
    Py_XDECREF(object);
    return status;
}

int native_mark(struct native_context *context, PyObject *tensor, PyObject *node)
{
    void *address = native_knows_nodes() ? native_tensor_of(tensor) : NULL;
    return address ? native_mark_unwrapped(context, address, node) : mark_metadata(tensor, node);
}

PyObject *native_find_mark(const struct native_context *context, PyObject *function)
{
    const void *own = context->marks && native_knows_nodes() ? native_node_of(function) : NULL;
    PyObject *node = own ? find_mark(context->marks, own) : NULL;
    return node ? native_get(node, NODE_MARK) : NULL;
}

void native_forget_marks(struct native_context *context)
{
    for (size_t i = 0; context->marks && i < STEPS; i++) {
        clear_step(&context->marks->steps[i]);
        native_map_free(&context->marks->steps[i].places);
        free(context->marks->steps[i].marks);
    }
    free(context->marks);
    context->marks = NULL;
}

/* ---- for Python ------------------------------------------------------------------------------ */

PyObject *native_mark_output(PyObject *context, PyObject *args)
{
    PyObject *tensor, *node;
    if (!PyArg_ParseTuple(args, "OO!:mark", &tensor, native_kinds[NATIVE_NODE], &node) ||
        native_mark((struct native_context *)context, tensor, node) < 0) {
        return NULL;
    }
    return Py_NewRef(Py_None);
}

PyObject *native_mark_of(PyObject *context, PyObject *function)
{
    PyObject *mark = native_find_mark((const struct native_context *)context, function);
    return mark || PyErr_Occurred() ? Py_XNewRef(mark) : Py_NewRef(Py_None);
}
