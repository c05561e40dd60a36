// SPDX-License-Identifier: MIT
#include "records.h"

#include <stddef.h>
#include <structmember.h>

#include "objects.h"

PyTypeObject *native_kinds[NATIVE_KINDS];
PyObject *native_zero;

static const struct {
    const char *name;
    const char *fields[NATIVE_MOST + 1];
} kinds[NATIVE_KINDS] = {
    [NATIVE_AGENT] = {"Agent",
                      {
                          [AGENT_WATCHING_NOW] = "watching_now",
                          [AGENT_DEAD] = "dead",
                          [AGENT_IN_BACKWARD] = "in_backward",
                          [AGENT_SHARDS] = "shards",
                          [AGENT_DETAIL] = "detail",
                          [AGENT_OVERFLOW] = "overflow",
                          [AGENT_OBSERVER] = "observer",
                          [AGENT_ALLOCATIONS] = "allocations",
                          [AGENT_STEPS] = "steps",
                          [AGENT_LIVE] = "live",
                          [AGENT_TIMING] = "timing",
                          [AGENT_SCALER] = "scaler",
                          [AGENT_REPORTER] = "reporter",
                          [AGENT_WATCHING] = "watching",
                          [AGENT_EVENTS] = "events",
                          [AGENT_CLEARING] = "clearing",
                          [AGENT_BACKWARD] = "_backward",
                      }},
    [NATIVE_STEPS] = {"Steps",
                      {
                          [STEPS_STEP] = "step",
                          [STEPS_FORWARD] = "forward",
                          [STEPS_RUNNING] = "running",
                          [STEPS_BEGUN] = "_begun",
                          [STEPS_PHASE] = "phase",
                          [STEPS_MAIN] = "_main",
                          [STEPS_OTHERS] = "_others",
                          [STEPS_CLOSURES] = "_closures",
                          [STEPS_IN_CLOSURE] = "_in_closure",
                          [STEPS_PASSES] = "_passes",
                          [STEPS_DUE] = "_due",
                          [STEPS_STEPPED] = "_stepped",
                          [STEPS_BY_HAND] = "_by_hand",
                          [STEPS_HAS_OPTIMIZER] = "_has_optimizer",
                      }},
    [NATIVE_EVENTS] = {"Events",
                       {
                           [EVENTS_LOSSES] = "_losses",
                           [EVENTS_PASSES] = "_passes",
                           [EVENTS_SEVERAL] = "_several",
                           [EVENTS_NUMBERS] = "_numbers",
                           [EVENTS_LATE] = "_late",
                           [EVENTS_TOLD] = "_told",
                           [EVENTS_LOADER] = "loader",
                       }},
    [NATIVE_LOADER] = {"Loader", {[LOADER_LAST] = "_last", [LOADER_USED] = "_used"}},
    [NATIVE_BACKWARD] = {"Backward", {[BACKWARD_DEPTH] = "depth", [BACKWARD_TOOK] = "took"}},
    [NATIVE_SCALER] = {"Scaler",
                       {
                           [SCALER_STEPPING] = "stepping",
                           [SCALER_SCALING] = "scaling",
                           [SCALER_KEPT] = "_kept",
                       }},
    [NATIVE_LIVE] = {"Live",
                     {
                         [LIVE_STEP] = "_step",
                         [LIVE_NOW] = "_now",
                         [LIVE_SCALES] = "_scales",
                         [LIVE_SCALE] = "scale",
                         [LIVE_KEPT] = "kept",
                         [LIVE_LEAVES] = "_leaves",
                         [LIVE_LASTING] = "_lasting",
                     }},
    [NATIVE_REPORTER] = {"Reporter", {[REPORTER_GRAPH] = "graph", [REPORTER_PENDING] = "_pending"}},
    [NATIVE_GRAPH] = {"Graph",
                      {
                          [GRAPH_STEP] = "step",
                          [GRAPH_RAN] = "ran",
                          [GRAPH_GROWN] = "grown",
                          [GRAPH_LEAKED] = "leaked",
                          [GRAPH_NOVEL] = "novel",
                          [GRAPH_FAMILIES] = "_families",
                          [GRAPH_ORIGINS] = "_origins",
                          [GRAPH_LASTING] = "_lasting",
                          [GRAPH_WRITERS] = "_writers",
                          [GRAPH_BEFORE] = "_before",
                      }},
    [NATIVE_FAMILY] = {"Family",
                       {
                           [FAMILY_NODES] = "nodes",
                           [FAMILY_STEP] = "step",
                           [FAMILY_COUNT] = "count",
                       }},
    [NATIVE_NODE] = {"Node",
                     {
                         [NODE_ID] = "id",
                         [NODE_NAME] = "name",
                         [NODE_STEP] = "step",
                         [NODE_ASIDE] = "aside",
                         [NODE_LEARNT] = "learnt",
                         [NODE_MARK] = "mark",
                         [NODE_ASKED] = "asked",
                         [NODE_WANTS] = "wants",
                         [NODE_PLACES] = "places",
                         [NODE_BACKWARD] = "backward",
                         [NODE_GRADIENT] = "gradient",
                         [NODE_EDGES] = "edges",
                         [NODE_OUTSIDE] = "outside",
                     }},
    [NATIVE_PLACES] = {"Places",
                       {
                           [PLACES_COUNT] = "count",
                           [PLACES_ADDRESS] = "address",
                           [PLACES_FORMS] = "_forms",
                       }},
    [NATIVE_OPERATOR] = {"Operator",
                         {
                             [OPERATOR_NAME] = "name",
                             [OPERATOR_USUAL] = "usual",
                             [OPERATOR_IN_PLACE] = "in_place",
                             [OPERATOR_COUNTS] = "counts",
                         }},
    [NATIVE_MARK] = {"Mark", {[MARK_NODE] = "node", [MARK_OPERATOR] = "operator"}},
    [NATIVE_REGIONS] = {"Regions", {[REGIONS_COMPILED] = "compiled"}},
};
static char full_names[NATIVE_KINDS][32]; /* must live as long as the types */
static PyMemberDef members[NATIVE_KINDS][NATIVE_MOST + 1];

bool native_is_a(PyObject *object, enum native_kind kind)
{
    return PyObject_TypeCheck(object, native_kinds[kind]);
}

void native_set(PyObject *record, int field, PyObject *value)
{
    native_set_new(record, field, Py_NewRef(value));
}

int native_set_new(PyObject *record, int field, PyObject *value)
{
    if (!value) {
        return -1;
    }
    native_swap(&((struct native_record *)record)->at[field], value);
    return 0;
}

int native_truth(PyObject *record, int field)
{
    PyObject *value = native_get(record, field);
    if (value == Py_True || value == Py_False || value == Py_None) {
        return value == Py_True;
    }
    return PyObject_IsTrue(value);
}

long native_get_int(PyObject *record, int field)
{
    return PyLong_AsLong(native_get(record, field));
}

int native_set_int(PyObject *record, int field, long value)
{
    return native_set_new(record, field, PyLong_FromLong(value));
}

/* ---- the types ------------------------------------------------------------------------------- */

static int visit_fields(PyObject *self, int count, visitproc visit, void *arg)
{
    struct native_record *record = (struct native_record *)self;
    Py_VISIT(Py_TYPE(self));
    for (int i = 0; i < count; i++) {
        Py_VISIT(record->at[i]);
    }
    return 0;
}

static int traverse_few(PyObject *self, visitproc visit, void *arg)
{
    return visit_fields(self, NATIVE_FIELDS, visit, arg);
}

static int traverse_many(PyObject *self, visitproc visit, void *arg)
{
    return visit_fields(self, NATIVE_MOST, visit, arg);
}

static int clear_fields(PyObject *self, int count)
{
    struct native_record *record = (struct native_record *)self;
    for (int i = 0; i < count; i++) {
        Py_CLEAR(record->at[i]);
    }
    return 0;
}

static int clear_few(PyObject *self)
{
    return clear_fields(self, NATIVE_FIELDS);
}

static int clear_many(PyObject *self)
{
    return clear_fields(self, NATIVE_MOST);
}

static void free_few(PyObject *self)
{
    native_dealloc(self, clear_few);
}

static void free_many(PyObject *self)
{
    native_dealloc(self, clear_many);
}

static PyObject *make_type(enum native_kind kind)
{
    static char doc[] = "The base of the class of the same name in gradb.torch.";
    PyMemberDef *member = members[kind];
    bool is_wide = kinds[kind].fields[NATIVE_FIELDS] != NULL;
    size_t places = is_wide ? NATIVE_MOST : NATIVE_FIELDS;
    for (int i = 0; kinds[kind].fields[i]; i++) {
        size_t place = offsetof(struct native_record, at) + (size_t)i * sizeof(PyObject *);
        member[i] = (PyMemberDef){
            .name = kinds[kind].fields[i], .type = T_OBJECT, .offset = (Py_ssize_t)place};
    }
    PyType_Slot slots[] = {
        {Py_tp_doc, doc},
        {Py_tp_members, member},
        {Py_tp_traverse, is_wide ? traverse_many : traverse_few},
        {Py_tp_clear, is_wide ? clear_many : clear_few},
        {Py_tp_dealloc, is_wide ? free_many : free_few},
        {0, NULL},
    };
    PyOS_snprintf(full_names[kind], sizeof(full_names[kind]), "gradb._native.%s", kinds[kind].name);
    PyType_Spec spec = {
        .name = full_names[kind],
        .basicsize = (int)(sizeof(struct native_record) + places * sizeof(PyObject *)),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    return PyType_FromSpec(&spec);
}

/* The names of its members, for classes that have further attributes. */
static int add_fields(PyObject *type, enum native_kind kind)
{
    PyObject *names = PyList_New(0);
    int status = names ? 0 : -1;
    for (int i = 0; status == 0 && kinds[kind].fields[i]; i++) {
        PyObject *name = PyUnicode_InternFromString(kinds[kind].fields[i]);
        status = name ? PyList_Append(names, name) : -1;
        Py_XDECREF(name);
    }
    status = status == 0 ? PyObject_SetAttrString(type, "fields", names) : -1;
    Py_XDECREF(names);
    return status;
}

int native_add_records(PyObject *module)
{
    native_zero = PyLong_FromLong(0); /* lives as long as the process */
    if (!native_zero) {
        return -1;
    }
    for (enum native_kind kind = 0; kind < NATIVE_KINDS; kind++) {
        PyObject *type = make_type(kind);
        if (!type || add_fields(type, kind) < 0 ||
            PyModule_AddObjectRef(module, kinds[kind].name, type) < 0) {
            Py_XDECREF(type);
            return -1;
        }
        native_kinds[kind] = (PyTypeObject *)type; /* lives as long as the process */
    }
    return 0;
}
