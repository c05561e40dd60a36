// SPDX-License-Identifier: MIT
/* Where lasting values are: parameters and their gradients, which are asked for at the end of
 * each step while they are watched. All other questions go to source.Source in Python. */
#include "module.h"

#include <stddef.h>
#include <stdint.h>

#include "context.h"
#include "names.h"
#include "objects.h"
#include "places.h"
#include "records.h"

struct source {
    PyObject ob_base;
    gradb_source here;              /* what libgradb gets */
    gradb_source python;            /* answers everything else */
    struct native_context *context; /* NULL: all goes to Python */
    PyObject *places;               /* dict: node number -> places.Places of a lasting value */
    PyObject *held;                 /* list: tensors that libgradb reads until it releases them */
};

/* The lasting value of a node, as live.Live.lasting; NULL without an exception: Python is to
 * look. */
static PyObject *find_lasting(const struct source *self, PyObject *number)
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

/* libgradb can read the tensor where it is; *ret says where. */
static int locate_value(const struct source *self, PyObject *number, PyObject *tensor,
                        gradb_tensor *ret)
{
    PyObject *places = Py_XNewRef(PyDict_GetItemWithError(self->places, number));
    PyObject *form =
        places ? Py_XNewRef(PyList_GetItem(native_get(places, PLACES_FORMS), 0)) : NULL;
    gradb_tensor *structs = form ? native_structs(places) : NULL;
    int placed = structs ? native_locate(self->context, tensor, form, &structs[0]) : 0;
    if (placed > 0) {
        *ret = structs[0];
        placed = structs[0].data != NULL;
    }
    Py_XDECREF(form);
    Py_XDECREF(places);
    return PyErr_Occurred() ? -1 : placed;
}

/* The same for a node's value, which is kept alive where `hold`. */
static int find_value(const struct source *self, gradb_node node, bool hold, gradb_tensor *ret)
{
    PyObject *number = PyLong_FromUnsignedLong(node);
    PyObject *tensor = number ? find_lasting(self, number) : NULL;
    int found = tensor && tensor != Py_None ? locate_value(self, number, tensor, ret) : 0;
    if (found > 0 && hold && PyList_Append(self->held, tensor) < 0) {
        found = -1;
    }
    Py_XDECREF(tensor);
    Py_XDECREF(number);
    return PyErr_Occurred() ? -1 : found;
}

/* Python looks again and reports what was wrong. An interrupt belongs to the program and is raised
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
    int found = find_value(self, node, hold, ret);
    return native_leave_apart(apart) < 0 ? -1 : found;
}

/* The value can be read where it is. */
static bool is_at_hand(const struct source *self, gradb_node node, unsigned slot, bool previous,
                       bool hold, gradb_tensor *ret)
{
    if (previous || slot != 0) {
        return false;
    }
    PyGILState_STATE state = PyGILState_Ensure();
    bool found = self->context && native_truth(self->context->scaler, SCALER_SCALING) == 0 &&
                 find_apart(self, node, hold, ret) > 0;
    drop_error();
    PyGILState_Release(state);
    return found;
}

static gradb_answer answer_locate(void *ctx, gradb_node node, unsigned slot, bool previous,
                                  gradb_tensor *ret, int64_t *step, char why[GRADB_WHY])
{
    const struct source *self = ctx;
    if (is_at_hand(self, node, slot, previous, true, ret)) {
        *step = -1; /* no step of its own: it is current */
        return GRADB_OK;
    }
    return self->python.locate(self->python.ctx, node, slot, previous, ret, step, why);
}

static gradb_answer answer_stats(void *ctx, gradb_node node, unsigned slot, bool previous,
                                 const gradb_stats_wanted *wanted, gradb_stats *ret,
                                 gradb_tensor *what, char why[GRADB_WHY])
{
    const struct source *self = ctx;
    gradb_tensor ignored;
    if (!wanted->against_previous && is_at_hand(self, node, slot, previous, false, &ignored)) {
        return GRADB_UNSUPPORTED; /* libgradb is faster */
    }
    return self->python.stats(self->python.ctx, node, slot, previous, wanted, ret, what, why);
}

/* ---- the type -------------------------------------------------------------------------------- */

static int init_source(PyObject *object, PyObject *args, PyObject *keywords)
{
    struct source *self = (struct source *)object;
    unsigned long long address;
    if (self->here.ctx || keywords || !PyArg_ParseTuple(args, "K:Source", &address)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "a Source is made once, without keywords");
        }
        return -1;
    }
    self->python = *(const gradb_source *)(uintptr_t)address;
    self->here = self->python;
    self->here.locate = answer_locate;
    self->here.stats = answer_stats;
    /* The other functions are Python's, called with our ctx, which they do not use. */
    self->here.ctx = self;
    return 0;
}

static PyObject *get_address(PyObject *object, PyObject *none)
{
    (void)none;
    return PyLong_FromVoidPtr(&((struct source *)object)->here);
}

static PyObject *use_context(PyObject *object, PyObject *args)
{
    struct source *self = (struct source *)object;
    PyObject *context, *places, *held;
    if (!PyArg_ParseTuple(args, "O!O!O!:use", native_context_type, &context, &PyDict_Type, &places,
                          &PyList_Type, &held)) {
        return NULL;
    }
    native_swap(&self->places, Py_NewRef(places));
    native_swap(&self->held, Py_NewRef(held));
    native_swap((PyObject **)&self->context, Py_NewRef(context));
    return Py_NewRef(Py_None);
}

NATIVE_COLLECTED(offsetof(struct source, context), offsetof(struct source, places),
                 offsetof(struct source, held))

static PyMethodDef methods[] = {
    {"address", get_address, METH_NOARGS,
     "the address of the struct gradb_source, which lives as long as this object"},
    {"use", use_context, METH_VARARGS,
     "use(context, places, held): from now on lasting values are answered here"},
    {NULL, NULL, 0, NULL},
};

static char doc[] =
    "Source(address of a struct gradb_source): the same source, faster where possible";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_init, init_source},
    {Py_tp_traverse, visit_references},
    {Py_tp_clear, drop_references},
    {Py_tp_dealloc, free_object},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec native_source_spec = {
    .name = "gradb._native.Source",
    .basicsize = sizeof(struct source),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
