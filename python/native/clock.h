// SPDX-License-Identifier: MIT
/*
 * Where the time of a step goes: the base of timing.Timing. All times are in seconds, read from the
 * clock of Python's perf_counter. Time spent waiting inside libgradb belongs to no section.
 */
#ifndef GRADB_PYTHON_CLOCK_H
#define GRADB_PYTHON_CLOCK_H

#include "agent/gradb.h"
#include "native.h"

/* In the order of timing.py. */
enum native_section {
    SECTION_GAP,
    SECTION_DATA,
    SECTION_FORWARD,
    SECTION_BACKWARD,
    SECTION_OPTIMIZER,
    SECTIONS
};

struct native_clock {
    PyObject ob_base;
    double away, since, left;    /* see timing.py */
    double spent[SECTIONS];      /* in this step */
    bool known[SECTIONS];        /* the step has had this section */
    bool on, has_data, waits;    /* see timing.py */
    enum native_section section; /* that runs now */
    double took;                 /* by the operator that has just run; negative: none has */
    struct native_op_time *op;   /* by number of the node */
    size_t op_room;
    PyObject *leaves; /* list of (leaf of a backward pass, when it was ready); NULL: none yet */
};

struct native_op_time {
    unsigned calls; /* 0: the node has not run */
    double seconds;
};
extern PyType_Spec native_clock_spec;
extern PyTypeObject *native_clock_type;

/* The section that runs from now on. */
void native_turn(struct native_clock *clock, enum native_section section);

/* The times of the step so far; -1 for a section that it has not had. */
gradb_times native_times(const struct native_clock *clock);

/* The times of the next step begin. */
void native_restart(struct native_clock *clock);

/* While `on`: seconds, to be taken again when the operator has run; it is that node. */
double native_read_clock(const struct native_clock *clock);
void native_took(struct native_clock *clock, double began);
int native_add_op(struct native_clock *clock, size_t number);
/* That leaf of a backward pass is ready. */
int native_add_leaf(struct native_clock *clock, PyObject *leaf);

/* Around a call of libgradb that may wait for the debugger: releases the interpreter lock, and the
 * clock does not run. */
struct native_wait {
    PyThreadState *state;
    double began;
};
struct native_wait native_begin_wait(void);
void native_end_wait(struct native_clock *clock, struct native_wait wait);

#endif
