// SPDX-License-Identifier: MIT
#include "clock.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>
#include <time.h>

PyTypeObject *native_clock_type;

/* The clock of Python's perf_counter. */
static double read_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Does not run while the training is stopped. */
double native_read_clock(const struct native_clock *clock)
{
    return read_seconds() - clock->away;
}

void native_turn(struct native_clock *clock, enum native_section section)
{
    double now = native_read_clock(clock);
    clock->spent[clock->section] += now - clock->since;
    clock->since = now;
    clock->section = section;
    clock->known[section] = true;
}

/* -1: the step has not had this section. */
static double get_spent(const struct native_clock *clock, enum native_section section)
{
    return clock->known[section] ? clock->spent[section] : -1.0;
}

gradb_times native_times(const struct native_clock *clock)
{
    gradb_times times = {
        .data = clock->has_data ? clock->spent[SECTION_DATA] : -1.0,
        .forward = get_spent(clock, SECTION_FORWARD),
        .backward = get_spent(clock, SECTION_BACKWARD),
        .optimizer = get_spent(clock, SECTION_OPTIMIZER),
        .gap = clock->spent[SECTION_GAP],
    };
    for (int i = 0; i < SECTIONS; i++) {
        times.total += clock->spent[i];
    }
    return times;
}

void native_restart(struct native_clock *clock)
{
    for (int i = 0; i < SECTIONS; i++) {
        clock->spent[i] = 0.0;
        clock->known[i] = i == SECTION_GAP;
    }
}

/* ---- operators ------------------------------------------------------------------------------- */

void native_took(struct native_clock *clock, double began)
{
    clock->took = native_read_clock(clock) - began;
}

int native_add_op(struct native_clock *clock, size_t number)
{
    if (clock->took < 0) {
        return 0; /* not an operator: an update of the optimizer, for example */
    }
    if (number >= clock->op_room) {
        size_t room = number < 512 ? 1024 : 2 * number;
        struct native_op_time *grown = reallocarray(clock->op, room, sizeof(*grown));
        if (!grown) {
            PyErr_NoMemory();
            return -1;
        }
        memset(grown + clock->op_room, 0, (room - clock->op_room) * sizeof(*grown));
        clock->op = grown;
        clock->op_room = room;
    }
    clock->op[number].calls++;
    clock->op[number].seconds += clock->took;
    clock->took = -1;
    return 0;
}

int native_add_leaf(struct native_clock *clock, PyObject *leaf)
{
    if (!clock->leaves && !(clock->leaves = PyList_New(0))) {
        return -1;
    }
    PyObject *pair = Py_BuildValue("Od", leaf, native_read_clock(clock));
    int status = pair ? PyList_Append(clock->leaves, pair) : -1;
    Py_XDECREF(pair);
    return status;
}

static PyObject *add_op(PyObject *self, PyObject *number)
{
    size_t wanted = PyLong_AsSize_t(number);
    if (PyErr_Occurred() || native_add_op((struct native_clock *)self, wanted) < 0) {
        return NULL;
    }
    return Py_NewRef(Py_None);
}

static PyObject *add_leaf(PyObject *self, PyObject *leaf)
{
    return native_add_leaf((struct native_clock *)self, leaf) < 0 ? NULL : Py_NewRef(Py_None);
}

/* [(number, calls, seconds)], and none are left. */
static PyObject *take_ops(PyObject *self, PyObject *none)
{
    struct native_clock *clock = (struct native_clock *)self;
    PyObject *list = PyList_New(0);
    (void)none;
    for (size_t i = 0; list && i < clock->op_room; i++) {
        struct native_op_time *op = &clock->op[i];
        if (op->calls == 0) {
            continue;
        }
        PyObject *item = Py_BuildValue("nId", (Py_ssize_t)i, op->calls, op->seconds);
        if (!item || PyList_Append(list, item) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(item);
        *op = (struct native_op_time){0};
    }
    return list;
}

static PyObject *take_leaves(PyObject *self, PyObject *none)
{
    struct native_clock *clock = (struct native_clock *)self;
    PyObject *list = clock->leaves;
    (void)none;
    clock->leaves = NULL;
    return list ? list : PyList_New(0);
}

static void free_clock(PyObject *self)
{
    struct native_clock *clock = (struct native_clock *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free(clock->op);
    Py_CLEAR(clock->leaves);
    release(self);
    Py_DECREF((PyObject *)type);
}

/* ---- the type -------------------------------------------------------------------------------- */

struct native_wait native_begin_wait(void)
{
    double began = read_seconds();
    return (struct native_wait){.state = PyEval_SaveThread(), .began = began};
}

void native_end_wait(struct native_clock *clock, struct native_wait absence)
{
    PyEval_RestoreThread(absence.state);
    clock->away += read_seconds() - absence.began;
}

static PyObject *get_now(PyObject *self, PyObject *none)
{
    (void)none;
    return PyFloat_FromDouble(native_read_clock((struct native_clock *)self));
}

static PyObject *turn_clock(PyObject *self, PyObject *section)
{
    struct native_clock *clock = (struct native_clock *)self;
    enum native_section before = clock->section;
    long wanted = PyLong_AsLong(section);
    if (wanted < 0 || wanted >= SECTIONS) {
        if (!PyErr_Occurred()) {
            PyErr_Format(PyExc_ValueError, "there are sections 0 to %d, not %ld", SECTIONS - 1,
                         wanted);
        }
        return NULL;
    }
    native_turn(clock, (enum native_section)wanted);
    return PyLong_FromLong((long)before);
}

static PyObject *get_times(PyObject *self, PyObject *none)
{
    (void)none;
    gradb_times found = native_times((struct native_clock *)self);
    return Py_BuildValue("dddddd", found.total, found.data, found.forward, found.backward,
                         found.optimizer, found.gap);
}

static PyObject *restart_clock(PyObject *self, PyObject *none)
{
    (void)none;
    native_restart((struct native_clock *)self);
    return Py_NewRef(Py_None);
}

static PyObject *make_clock(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args;
    (void)keywords;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = allocate(type, 0);
    if (self) {
        native_restart((struct native_clock *)self);
        ((struct native_clock *)self)->since = read_seconds();
    }
    return self;
}

static PyMemberDef members[] = {
    {"on", T_BOOL, offsetof(struct native_clock, on), 0, NULL},
    {"away", T_DOUBLE, offsetof(struct native_clock, away), 0, NULL},
    {"has_data", T_BOOL, offsetof(struct native_clock, has_data), 0, NULL},
    {"waits", T_BOOL, offsetof(struct native_clock, waits), 0, NULL},
    {"_left", T_DOUBLE, offsetof(struct native_clock, left), 0, NULL},
    {"_took", T_DOUBLE, offsetof(struct native_clock, took), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef methods[] = {
    {"now", get_now, METH_NOARGS,
     "seconds on a clock that does not run while the training is stopped"},
    {"turn", turn_clock, METH_O,
     "sets the section that runs from now on; returns the previous one"},
    {"times", get_times, METH_NOARGS,
     "of this step: total, data, forward, backward, optimizer, gap"},
    {"restart", restart_clock, METH_NOARGS, "begins the times of the next step"},
    {"ran", add_op, METH_O, "the measured operator is this node"},
    {"leaf_ran", add_leaf, METH_O, "a leaf of a backward pass is ready"},
    {"take_operators", take_ops, METH_NOARGS,
     "[(number of the node, calls, seconds)]; none are left"},
    {"take_leaves", take_leaves, METH_NOARGS, "[(leaf, when it was ready)]; none are left"},
    {NULL, NULL, 0, NULL},
};

static char doc[] = "The base of timing.Timing.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},         {Py_tp_new, make_clock},  {Py_tp_dealloc, free_clock},
    {Py_tp_members, members}, {Py_tp_methods, methods}, {0, NULL},
};

PyType_Spec native_clock_spec = {
    .name = "gradb._native.Clock",
    .basicsize = sizeof(struct native_clock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};
