// SPDX-License-Identifier: MIT
/* Bases of classes of gradb.torch whose attributes are needed at every operator: there they are
 * members like any other, here they are places in a struct. */
#include "native.h"

#include <stddef.h>
#include <structmember.h>

PyTypeObject *native_kinds[NATIVE_KINDS];

static const struct {
    const char *name;
    const char *fields[NATIVE_FIELDS];
} kinds[NATIVE_KINDS] = {
    [NATIVE_AGENT] = {"Agent",
                      {
                          [AGENT_LOOKING] = "looking",
                          [AGENT_DEAD] = "dead",
                          [AGENT_IN_BACKWARD] = "in_backward",
                          [AGENT_SHARDS] = "shards",
                          [AGENT_DETAIL] = "detail",
                          [AGENT_OVERFLOW] = "overflow",
                          [AGENT_STEPS] = "steps",
                          [AGENT_LIVE] = "live",
                          [AGENT_TIMING] = "timing",
                          [AGENT_SCALER] = "scaler",
                          [AGENT_TELLING] = "telling",
                      }},
    [NATIVE_STEPS] = {"Steps",
                      {
                          [STEPS_STEP] = "step",
                          [STEPS_FORWARD] = "forward",
                          [STEPS_RUNNING] = "running",
                      }},
    [NATIVE_TIMING] = {"Timing", {[TIMING_ON] = "on", [TIMING_AWAY] = "away"}},
    [NATIVE_SCALER] = {"Scaler", {[SCALER_STEPPING] = "stepping", [SCALER_SCALING] = "scaling"}},
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
    [NATIVE_TELLING] = {"Telling", {[TELLING_GRAPH] = "graph", [TELLING_PENDING] = "_pending"}},
    [NATIVE_GRAPH] = {"Graph",
                      {
                          [GRAPH_STEP] = "step",
                          [GRAPH_RAN] = "ran",
                          [GRAPH_GROWN] = "grown",
                          [GRAPH_LEAKED] = "leaked",
                          [GRAPH_FAMILIES] = "_families",
                          [GRAPH_ORIGINS] = "_origins",
                          [GRAPH_LASTING] = "_lasting",
                          [GRAPH_WRITERS] = "_writers",
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
};
static char full_names[NATIVE_KINDS][32]; /* as long as the types */
static PyMemberDef members[NATIVE_KINDS][NATIVE_FIELDS + 1];

bool native_is_a(PyObject *object, enum native_kind kind)
{
    return PyObject_TypeCheck(object, native_kinds[kind]);
}

PyObject *native_get(PyObject *record, int field)
{
    PyObject *value = ((struct native_record *)record)->at[field];
    return value ? value : Py_None;
}

void native_set(PyObject *record, int field, PyObject *value)
{
    native_put(record, field, Py_NewRef(value));
}

int native_put(PyObject *record, int field, PyObject *value)
{
    if (!value) {
        return -1;
    }
    native_swap(&((struct native_record *)record)->at[field], value);
    return 0;
}

int native_is(PyObject *record, int field)
{
    PyObject *value = native_get(record, field);
    if (value == Py_True || value == Py_False || value == Py_None) {
        return value == Py_True;
    }
    return PyObject_IsTrue(value);
}

/* ---- the types ------------------------------------------------------------------------------- */

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    struct native_record *record = (struct native_record *)self;
    Py_VISIT(Py_TYPE(self));
    for (int i = 0; i < NATIVE_FIELDS; i++) {
        Py_VISIT(record->at[i]);
    }
    return 0;
}

static int clear(PyObject *self)
{
    struct native_record *record = (struct native_record *)self;
    for (int i = 0; i < NATIVE_FIELDS; i++) {
        Py_CLEAR(record->at[i]);
    }
    return 0;
}

static void dealloc(PyObject *self)
{
    native_dealloc(self, clear);
}

static PyObject *make_type(enum native_kind kind)
{
    static char doc[] = "The base of the class of that name in gradb.torch.";
    PyMemberDef *member = members[kind];
    for (int i = 0; i < NATIVE_FIELDS && kinds[kind].fields[i]; i++) {
        size_t place = offsetof(struct native_record, at) + (size_t)i * sizeof(PyObject *);
        member[i] = (PyMemberDef){
            .name = kinds[kind].fields[i], .type = T_OBJECT, .offset = (Py_ssize_t)place};
    }
    PyType_Slot slots[] = {
        {Py_tp_doc, doc},     {Py_tp_members, member},  {Py_tp_traverse, traverse},
        {Py_tp_clear, clear}, {Py_tp_dealloc, dealloc}, {0, NULL},
    };
    PyOS_snprintf(full_names[kind], sizeof(full_names[kind]), "gradb._native.%s", kinds[kind].name);
    PyType_Spec spec = {
        .name = full_names[kind],
        .basicsize = sizeof(struct native_record),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    return PyType_FromSpec(&spec);
}

/* The names of its members, for classes that have others besides. */
static int add_fields(PyObject *type, enum native_kind kind)
{
    PyObject *names = PyList_New(0);
    int status = names ? 0 : -1;
    for (int i = 0; status == 0 && i < NATIVE_FIELDS && kinds[kind].fields[i]; i++) {
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
    for (enum native_kind kind = 0; kind < NATIVE_KINDS; kind++) {
        PyObject *type = make_type(kind);
        if (!type || add_fields(type, kind) < 0 ||
            PyModule_AddObjectRef(module, kinds[kind].name, type) < 0) {
            Py_XDECREF(type);
            return -1;
        }
        native_kinds[kind] = (PyTypeObject *)type; /* for good */
    }
    return 0;
}
