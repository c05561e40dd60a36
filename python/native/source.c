// SPDX-License-Identifier: MIT
/* Where lasting values are, and the copies of the previous step: parameters and their gradients,
 * which are asked for at the end of each step while they are watched. All other questions go to
 * source.Source in Python. */
#include "module.h"

#include <stddef.h>
#include <stdint.h>

#include "context.h"
#include "names.h"
#include "objects.h"
#include "places.h"
#include "records.h"

/* The items of an entry of Kept.before. */
enum kept_item { KEPT_STEP, KEPT_COPIES, KEPT_SCALE };

struct source {
    PyObject ob_base;
    gradb_source here;              /* what libgradb gets */
    gradb_source python;            /* answers everything else */
    struct native_context *context; /* NULL: all goes to Python */
    PyObject *places;               /* dict: node number -> places.Places of a lasting value */
    PyObject *kept;                 /* dict: previous_step.Kept.before */
    PyObject *kept_places;          /* dict: node number -> places.Places of what is kept */
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

/* An entry of Kept.before whose copies are what the values were. */
static bool is_unscaled(PyObject *entry)
{
    return PyFloat_AsDouble(PyTuple_GetItem(entry, KEPT_SCALE)) == 1.0;
}

/* What was kept of a node's first output in the previous step, which *step gets; NULL without an
 * exception: Python is to look. */
static PyObject *find_kept(const struct source *self, PyObject *number, int64_t *step)
{
    PyObject *entry = PyDict_GetItemWithError(self->kept, number);
    PyObject *copies = entry && is_unscaled(entry) ? PyTuple_GetItem(entry, KEPT_COPIES) : NULL;
    if (!copies || PyList_Size(copies) < 1) {
        return NULL;
    }
    *step = PyLong_AsLongLong(PyTuple_GetItem(entry, KEPT_STEP));
    return PyErr_Occurred() ? NULL : Py_NewRef(PyList_GetItem(copies, 0));
}

/* libgradb can read the tensor where it is; *ret says where. */
static int locate_value(const struct source *self, PyObject *table, PyObject *number,
                        PyObject *tensor, gradb_tensor *ret)
{
    PyObject *places = Py_XNewRef(PyDict_GetItemWithError(table, number));
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

/* What libgradb asks. */
struct question {
    gradb_node node;
    bool previous, compares, hold;
};

/* The same for a node's value; *step gets -1 where it is current. */
static int find_value(const struct source *self, const struct question *asked, PyObject *number,
                      gradb_tensor *ret, int64_t *step)
{
    *step = -1;
    PyObject *tensor = asked->previous ? find_kept(self, number, step) : find_lasting(self, number);
    PyObject *table = asked->previous ? self->kept_places : self->places;
    int found = tensor && tensor != Py_None ? locate_value(self, table, number, tensor, ret) : 0;
    if (found > 0 && asked->hold && PyList_Append(self->held, tensor) < 0) {
        found = -1;
    }
    Py_XDECREF(tensor);
    return PyErr_Occurred() ? -1 : found;
}

/* libgradb can compare the value with the previous one, if there is one. */
static int is_comparable(const struct source *self, PyObject *number)
{
    PyObject *entry = PyDict_GetItemWithError(self->kept, number);
    bool comparable = !entry || is_unscaled(entry);
    return PyErr_Occurred() ? -1 : comparable;
}

static int answer_question(const struct source *self, const struct question *asked,
                           gradb_tensor *ret, int64_t *step)
{
    PyObject *number = PyLong_FromUnsignedLong(asked->node);
    int found = number ? find_value(self, asked, number, ret, step) : -1;
    if (found > 0 && asked->compares) {
        found = is_comparable(self, number);
    }
    Py_XDECREF(number);
    return found;
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

static int answer_apart(const struct source *self, const struct question *asked, gradb_tensor *ret,
                        int64_t *step)
{
    PyObject *apart = native_enter_apart(self->context);
    if (!apart) {
        return -1;
    }
    int found = answer_question(self, asked, ret, step);
    return native_leave_apart(apart) < 0 ? -1 : found;
}

/* The value can be read where it is. */
static bool is_at_hand(const struct source *self, const struct question *asked, gradb_tensor *ret,
                       int64_t *step)
{
    PyGILState_STATE state = PyGILState_Ensure();
    bool found = self->context && native_truth(self->context->scaler, SCALER_SCALING) == 0 &&
                 answer_apart(self, asked, ret, step) > 0;
    drop_error();
    PyGILState_Release(state);
    return found;
}

static gradb_answer answer_locate(void *ctx, gradb_node node, unsigned slot, bool previous,
                                  gradb_tensor *ret, int64_t *step, char why[GRADB_WHY])
{
    const struct source *self = ctx;
    const struct question asked = {.node = node, .previous = previous, .hold = true};
    if (slot == 0 && is_at_hand(self, &asked, ret, step)) {
        return GRADB_OK;
    }
    return self->python.locate(self->python.ctx, node, slot, previous, ret, step, why);
}

static gradb_answer answer_stats(void *ctx, gradb_node node, unsigned slot, bool previous,
                                 const gradb_stats_wanted *wanted, gradb_stats *ret,
                                 gradb_tensor *what, char why[GRADB_WHY])
{
    const struct source *self = ctx;
    const struct question asked = {.node = node, .compares = wanted->against_previous};
    gradb_tensor ignored;
    int64_t step;
    if (slot == 0 && !previous && is_at_hand(self, &asked, &ignored, &step)) {
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
    PyObject *context, *places, *kept, *kept_places, *held;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!:use", native_context_type, &context, &PyDict_Type,
                          &places, &PyDict_Type, &kept, &PyDict_Type, &kept_places, &PyList_Type,
                          &held)) {
        return NULL;
    }
    native_swap(&self->places, Py_NewRef(places));
    native_swap(&self->kept, Py_NewRef(kept));
    native_swap(&self->kept_places, Py_NewRef(kept_places));
    native_swap(&self->held, Py_NewRef(held));
    native_swap((PyObject **)&self->context, Py_NewRef(context));
    return Py_NewRef(Py_None);
}

NATIVE_COLLECTED(offsetof(struct source, context), offsetof(struct source, places),
                 offsetof(struct source, kept), offsetof(struct source, kept_places),
                 offsetof(struct source, held))

static PyMethodDef methods[] = {
    {"address", get_address, METH_NOARGS,
     "the address of the struct gradb_source, which lives as long as this object"},
    {"use", use_context, METH_VARARGS,
     "use(context, places, kept, kept_places, held): from now on lasting values, and what is kept "
     "of the previous step, are located here"},
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
