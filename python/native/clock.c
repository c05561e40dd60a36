// SPDX-License-Identifier: MIT
#include "clock.h"

#include <stddef.h>
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
static double read_clock(const struct native_clock *clock)
{
    return read_seconds() - clock->away;
}

void native_turn(struct native_clock *clock, enum native_section section)
{
    double now = read_clock(clock);
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
    return PyFloat_FromDouble(read_clock((struct native_clock *)self));
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
    {"_left", T_DOUBLE, offsetof(struct native_clock, left), 0, NULL},
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
    {NULL, NULL, 0, NULL},
};

static char doc[] = "The base of timing.Timing.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc}, {Py_tp_new, make_clock}, {Py_tp_members, members}, {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec native_clock_spec = {
    .name = "gradb._native.Clock",
    .basicsize = sizeof(struct native_clock),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};
