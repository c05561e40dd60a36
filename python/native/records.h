// SPDX-License-Identifier: MIT
/*
 * The bases of those classes of gradb.torch whose attributes are needed at every operator. In
 * Python the attributes are members like any other; here they are places in a struct. The meaning
 * of each is in the docstring of its class.
 */
#ifndef GRADB_PYTHON_RECORDS_H
#define GRADB_PYTHON_RECORDS_H

#include "native.h"

enum native_kind {
    NATIVE_AGENT,
    NATIVE_STEPS,
    NATIVE_EVENTS,
    NATIVE_LOADER,
    NATIVE_BACKWARD,
    NATIVE_SCALER,
    NATIVE_LIVE,
    NATIVE_REPORTER,
    NATIVE_GRAPH,
    NATIVE_FAMILY,
    NATIVE_NODE,
    NATIVE_PLACES,
    NATIVE_OPERATOR,
    NATIVE_MARK,
    NATIVE_REGIONS,
    NATIVE_KINDS
};
enum native_agent_field {
    AGENT_WATCHING_NOW,
    AGENT_DEAD,
    AGENT_IN_BACKWARD,
    AGENT_SHARDS,
    AGENT_DETAIL,
    AGENT_OVERFLOW,
    AGENT_OBSERVER,
    AGENT_ALLOCATIONS,
    AGENT_STEPS,
    AGENT_LIVE,
    AGENT_TIMING,
    AGENT_SCALER,
    AGENT_REPORTER,
    AGENT_WATCHING,
    AGENT_EVENTS,
    AGENT_CLEARING,
    AGENT_BACKWARD
};
enum native_steps_field {
    STEPS_STEP,
    STEPS_FORWARD,
    STEPS_RUNNING,
    STEPS_BEGUN,
    STEPS_PHASE,
    STEPS_MAIN,
    STEPS_OTHERS,
    STEPS_CLOSURES,
    STEPS_IN_CLOSURE,
    STEPS_PASSES,
    STEPS_DUE,
    STEPS_STEPPED,
    STEPS_BY_HAND,
    STEPS_HAS_OPTIMIZER
};
enum native_events_field {
    EVENTS_LOSSES,
    EVENTS_PASSES,
    EVENTS_SEVERAL,
    EVENTS_NUMBERS,
    EVENTS_LATE,
    EVENTS_TOLD,
    EVENTS_LOADER
};
enum native_loader_field { LOADER_LAST, LOADER_USED };
enum native_backward_field { BACKWARD_DEPTH, BACKWARD_TOOK };
enum native_scaler_field { SCALER_STEPPING, SCALER_SCALING, SCALER_KEPT };
enum native_live_field {
    LIVE_STEP,
    LIVE_NOW,
    LIVE_SCALES,
    LIVE_SCALE,
    LIVE_KEPT,
    LIVE_LEAVES,
    LIVE_LASTING
};
enum native_reporter_field { REPORTER_GRAPH, REPORTER_PENDING };
enum native_graph_field {
    GRAPH_STEP,
    GRAPH_RAN,
    GRAPH_GROWN,
    GRAPH_LEAKED,
    GRAPH_NOVEL,
    GRAPH_FAMILIES,
    GRAPH_ORIGINS,
    GRAPH_LASTING,
    GRAPH_WRITERS,
    GRAPH_BEFORE
};
enum native_family_field { FAMILY_NODES, FAMILY_STEP, FAMILY_COUNT };
enum native_node_field {
    NODE_ID,
    NODE_NAME,
    NODE_STEP,
    NODE_ASIDE,
    NODE_LEARNT,
    NODE_MARK,
    NODE_ASKED,
    NODE_WANTS,
    NODE_PLACES,
    NODE_BACKWARD,
    NODE_GRADIENT,
    NODE_EDGES,
    NODE_OUTSIDE
};
enum native_places_field { PLACES_COUNT, PLACES_ADDRESS, PLACES_FORMS };
enum native_operator_field { OPERATOR_NAME, OPERATOR_USUAL, OPERATOR_IN_PLACE, OPERATOR_COUNTS };
enum native_mark_field { MARK_NODE, MARK_OPERATOR };
enum native_regions_field { REGIONS_COMPILED };

#define NATIVE_FIELDS 13 /* at most, of a class with many instances */
#define NATIVE_MOST   20 /* at most, of a class with one instance */

struct native_record {
    PyObject ob_base;
    PyObject *at[]; /* NULL is None */
};
extern PyTypeObject *native_kinds[NATIVE_KINDS]; /* live as long as the process */

/* Adds the classes to the module. */
int native_add_records(PyObject *module);

bool native_is_a(PyObject *object, enum native_kind kind);

/* Borrowed; never fails. */
static inline PyObject *native_get(PyObject *record, int field)
{
    PyObject *value = ((struct native_record *)record)->at[field];
    return value ? value : Py_None;
}
void native_set(PyObject *record, int field, PyObject *value);
/* Takes over `value`. Where it is NULL: -1, and nothing is set. */
int native_set_new(PyObject *record, int field, PyObject *value);

/* A field that only ever holds True or something false. Never fails. */
static inline bool native_is_true(PyObject *record, int field)
{
    return ((struct native_record *)record)->at[field] == Py_True;
}
/* 1, 0, or -1: the truth of any field. */
int native_truth(PyObject *record, int field);

/* A field that holds a small number. native_get_int: -1 with an exception where it does not. */
long native_get_int(PyObject *record, int field);
int native_set_int(PyObject *record, int field, long value);
extern PyObject *native_zero;
/* Nearly always the field refers to the one cached 0. */
static inline bool native_is_zero(PyObject *record, int field)
{
    return native_get(record, field) == native_zero || native_get_int(record, field) == 0;
}

#endif
