// SPDX-License-Identifier: MIT
/* Where values that last lie: parameters and their gradients, which are asked for at the end of
 * each step when they are watched. All other questions go on to the Python that answers them
 * (source.Source). */
#include "native.h"

#include <stddef.h>
#include <stdint.h>

struct source {
    PyObject_HEAD gradb_source here; /* what libgradb is given */
    gradb_source python;             /* what answers the rest */
    struct native_context *context;  /* NULL: all goes to Python */
    PyObject *places;                /* dict: node number -> values.Places of a value that lasts */
    PyObject *held;                  /* list: tensors that libgradb reads until it releases them */
};

/* The value that lasts of a node, as values.Live.lasting; NULL without an exception: Python is to
 * look. */
static PyObject *lasting(const struct source *self, PyObject *number)
{
    PyObject *live = self->context->live;
    PyObject *leaf = PyDict_GetItemWithError(native_get(live, LIVE_LEAVES), number);
    if (leaf) {
        PyObject *parameter = PyObject_CallNoArgs(leaf);
        PyObject *gradient = parameter && parameter != Py_None
                                 ? PyObject_GetAttr(parameter, native_names.grad)
                                 : NULL;
        Py_XDECREF(parameter);
        return gradient;
    }
    PyObject *get = PyDict_GetItemWithError(native_get(live, LIVE_LASTING), number);
    return get ? PyObject_CallNoArgs(get) : NULL;
}

/* 1, 0, or -1: libgradb can read the tensor as it lies; *ret says where. */
static int place(const struct source *self, PyObject *number, PyObject *tensor, gradb_tensor *ret)
{
    PyObject *places = Py_XNewRef(PyDict_GetItemWithError(self->places, number));
    PyObject *form =
        places ? Py_XNewRef(PyList_GetItem(native_get(places, PLACES_FORMS), 0)) : NULL;
    gradb_tensor *structs = form ? native_structs(places) : NULL;
    int placed = structs ? native_place(self->context, tensor, form, &structs[0]) : 0;
    if (placed > 0) {
        *ret = structs[0];
        placed = structs[0].data != NULL;
    }
    Py_XDECREF(form);
    Py_XDECREF(places);
    return PyErr_Occurred() ? -1 : placed;
}

/* The same of a node's value, which is held when `hold`. */
static int find(const struct source *self, gradb_node node, bool hold, gradb_tensor *ret)
{
    PyObject *number = PyLong_FromUnsignedLong(node);
    PyObject *tensor = number ? lasting(self, number) : NULL;
    int found = tensor && tensor != Py_None ? place(self, number, tensor, ret) : 0;
    if (found > 0 && hold && PyList_Append(self->held, tensor) < 0) {
        found = -1;
    }
    Py_XDECREF(tensor);
    Py_XDECREF(number);
    return PyErr_Occurred() ? -1 : found;
}

/* Python looks once more, and tells of what was wrong; an interrupt is the program's and comes
 * again there. */
static void drop_error(void)
{
    bool interrupted = PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    PyErr_Clear();
    if (interrupted) {
        PyErr_SetInterrupt();
    }
}

static int find_apart(const struct source *self, gradb_node node, bool hold, gradb_tensor *ret)
{
    PyObject *apart = native_enter_apart(self->context);
    if (!apart) {
        return -1;
    }
    int found = find(self, node, hold, ret);
    return native_leave_apart(apart) < 0 ? -1 : found;
}

/* Whether the value can be read as it lies. */
static bool is_at_hand(const struct source *self, gradb_node node, unsigned slot, bool previous,
                       bool hold, gradb_tensor *ret)
{
    if (previous || slot != 0) {
        return false;
    }
    PyGILState_STATE state = PyGILState_Ensure();
    bool found = self->context && native_is(self->context->scaler, SCALER_SCALING) == 0 &&
                 find_apart(self, node, hold, ret) > 0;
    drop_error();
    PyGILState_Release(state);
    return found;
}

static gradb_answer locate(void *ctx, gradb_node node, unsigned slot, bool previous,
                           gradb_tensor *ret, int64_t *step, char why[GRADB_WHY])
{
    const struct source *self = ctx;
    if (is_at_hand(self, node, slot, previous, true, ret)) {
        *step = -1; /* as old as whoever holds it */
        return GRADB_OK;
    }
    return self->python.locate(self->python.ctx, node, slot, previous, ret, step, why);
}

static gradb_answer stats(void *ctx, gradb_node node, unsigned slot, bool previous,
                          const gradb_stats_wanted *wanted, gradb_stats *ret, gradb_tensor *what,
                          char why[GRADB_WHY])
{
    const struct source *self = ctx;
    gradb_tensor ignored;
    if (!wanted->against_previous && is_at_hand(self, node, slot, previous, false, &ignored)) {
        return GRADB_UNSUPPORTED; /* libgradb is faster */
    }
    return self->python.stats(self->python.ctx, node, slot, previous, wanted, ret, what, why);
}

/* ---- the type -------------------------------------------------------------------------------- */

static int init(PyObject *object, PyObject *args, PyObject *keywords)
{
    struct source *self = (struct source *)object;
    unsigned long long address;
    if (self->here.ctx || keywords || !PyArg_ParseTuple(args, "K:Source", &address)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "a Source is made once, and has no keywords");
        }
        return -1;
    }
    self->python = *(const gradb_source *)(uintptr_t)address;
    self->here = self->python;
    self->here.locate = locate;
    self->here.stats = stats;
    /* The rest is passed on as it is, with the ctx of here: Python's functions do not use it. */
    self->here.ctx = self;
    return 0;
}

static PyObject *address(PyObject *object, PyObject *none)
{
    (void)none;
    return PyLong_FromVoidPtr(&((struct source *)object)->here);
}

static PyObject *use(PyObject *object, PyObject *args)
{
    struct source *self = (struct source *)object;
    PyObject *context, *places, *held;
    if (!PyArg_ParseTuple(args, "OO!O!:use", &context, &PyDict_Type, &places, &PyList_Type,
                          &held)) {
        return NULL;
    }
    if (!PyObject_TypeCheck(context, native_context_type)) {
        PyErr_SetString(PyExc_TypeError, "use() takes a Context first");
        return NULL;
    }
    native_swap(&self->places, Py_NewRef(places));
    native_swap(&self->held, Py_NewRef(held));
    native_swap((PyObject **)&self->context, Py_NewRef(context));
    return Py_NewRef(Py_None);
}

static const size_t references[] = {offsetof(struct source, context),
                                    offsetof(struct source, places), offsetof(struct source, held),
                                    0};

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    return native_visit(self, references, visit, arg);
}

static int clear(PyObject *self)
{
    return native_drop(self, references);
}

static void dealloc(PyObject *self)
{
    native_dealloc(self, clear);
}

static PyMethodDef methods[] = {
    {"address", address, METH_NOARGS,
     "where the struct gradb_source lies; it lives as long as this"},
    {"use", use, METH_VARARGS, "use(context, places, held): lasting values are answered here"},
    {NULL, NULL, 0, NULL},
};

static char doc[] = "Source(address of a struct gradb_source): the same, quicker where it can be.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_init, init},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec native_source_spec = {
    .name = "gradb._native.Source",
    .basicsize = sizeof(struct source),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
