// SPDX-License-Identifier: MIT
/* The batch of a loss that is called where it was called last, with tensors of the same form: goes
 * to libgradb without Python. Everything else is metrics.Metrics' in Python. */
#include "module.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "context.h"
#include "idle.h"
#include "names.h"
#include "objects.h"
#include "records.h"
#include "tensors.h"

#define SIDES      2 /* outputs and labels: the first two arguments of a loss */
#define NO_IGNORED (-1)

struct batch {
    PyObject ob_base;
    struct native_context *context;
    PyObject *metrics, *happenings;
    PyObject *held;  /* what the structs point to */
    PyObject *frame; /* sys._getframe */
    PyObject *depth; /* of the program's frame, from that of the wrapper */
    PyObject *code, *instruction;
    PyObject *ignored;        /* the value of that argument; None: it has none */
    Py_ssize_t ignored_at;    /* number of the argument; NO_IGNORED: it does not matter */
    gradb_tensor side[SIDES]; /* without addresses */
    long long reach[SIDES], size[SIDES];
    gradb_batch given;
    bool (*give)(struct gradb *, const char *, const gradb_batch *);
};

/* ---- as last time? --------------------------------------------------------------------------- */

/* The first loss of a step of the training. */
static int is_first_of_training(const struct batch *self)
{
    const struct native_context *context = self->context;
    int gradients = native_has_gradients(context->has_gradients);
    int evaluates =
        gradients > 0
            ? native_take_truth(PyObject_GetAttr(self->happenings, native_names.evaluates))
            : gradients;
    if (gradients <= 0 || evaluates != 0) {
        return gradients < 0 || evaluates < 0 ? -1 : 0;
    }
    int known = native_take_equal(PyObject_GetAttr(self->metrics, native_names.step),
                                  native_get(context->steps, STEPS_STEP));
    return known < 0 ? -1 : !known;
}

/* The program calls it at the same place. A shorter stack raises ValueError. */
static int is_same_place(const struct batch *self)
{
    PyObject *frame = PyObject_CallFunctionObjArgs(self->frame, self->depth, NULL);
    if (!frame) {
        bool is_short = PyErr_ExceptionMatches(PyExc_ValueError);
        if (is_short) {
            PyErr_Clear();
        }
        return is_short ? 0 : -1;
    }
    int same = native_take_equal(PyObject_GetAttr(frame, native_names.f_code), self->code);
    if (same > 0) {
        same = native_take_equal(PyObject_GetAttr(frame, native_names.f_lasti), self->instruction);
    }
    Py_DECREF(frame);
    return same;
}

static int is_same_ignored(const struct batch *self, PyObject *const *args, Py_ssize_t count)
{
    if (self->ignored_at == NO_IGNORED) {
        return 1;
    }
    PyObject *value = self->ignored_at < count ? args[self->ignored_at] : Py_None;
    return value == self->ignored ? 1 : PyObject_RichCompareBool(value, self->ignored, Py_EQ);
}

/* Reads where a tensor is, if it is of the same form. No mode of the program is to see that. */
static int take_side(struct batch *self, PyObject *tensor, int side)
{
    PyObject *type = (PyObject *)Py_TYPE(tensor);
    if (type != self->context->tensor && type != self->context->parameter) {
        return 0;
    }
    int negative = native_ask(tensor, native_names.is_neg);
    return negative != 0 ? (negative < 0 ? -1 : 0)
                         : native_read(tensor, &self->side[side], self->reach[side],
                                       self->size[side], &self->side[side].data);
}

static int take_sides(struct batch *self, PyObject *const *args)
{
    int modes = native_take_truth(PyObject_CallNoArgs(self->context->modes));
    if (modes != 0) {
        return modes < 0 ? -1 : 0;
    }
    int taken = take_side(self, args[0], 0);
    return taken > 0 ? take_side(self, args[1], 1) : taken;
}

/* ---- the batch ------------------------------------------------------------------------------- */

/* libgradb reads it while other threads of the program run; false: it has no metric any more. */
static bool give_batch(struct batch *self)
{
    struct gradb *handle = self->context->handle;
    PyThreadState *thread = PyEval_SaveThread();
    bool wanted = self->give(handle, NULL, &self->given);
    PyEval_RestoreThread(thread);
    return wanted;
}

static int count_batch(struct batch *self, PyObject *const *args, Py_ssize_t count)
{
    int same = count < SIDES ? 0 : native_is_idle(self->context);
    if (same > 0) {
        same = native_is_ours(self->context) ? is_first_of_training(self) : 0;
    }
    if (same > 0) {
        same = is_same_place(self);
    }
    if (same > 0) {
        same = is_same_ignored(self, args, count);
    }
    if (same > 0) {
        same = take_sides(self, args);
    }
    if (same > 0) {
        same = give_batch(self);
    }
    return same > 0 && PyObject_SetAttr(self->metrics, native_names.step,
                                        native_get(self->context->steps, STEPS_STEP)) < 0
               ? -1
               : same;
}

static PyObject *count_call(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    struct batch *self = (struct batch *)object;
    int counted = self->give ? count_batch(self, args, count) : 0;
    if (counted < 0 && native_report_fault(self->context) < 0) {
        return NULL;
    }
    return PyBool_FromLong(counted);
}

/* ---- the type -------------------------------------------------------------------------------- */

static void copy_structs(struct batch *self, const gradb_batch *from)
{
    self->side[0] = *from->outputs;
    self->side[1] = *from->labels;
    self->given = *from;
    self->given.outputs = &self->side[0];
    self->given.labels = &self->side[1];
}

static int init_batch(PyObject *object, PyObject *args, PyObject *keywords)
{
    struct batch *self = (struct batch *)object;
    PyObject *context, *part[8];
    PyObject **places[] = {&self->metrics, &self->happenings, &self->held,        &self->frame,
                           &self->depth,   &self->code,       &self->instruction, &self->ignored};
    unsigned long long given, function;
    if (self->give || keywords ||
        !PyArg_ParseTuple(args, "O!OOOOOOOOnKK(LL)(LL):Batch", native_context_type, &context,
                          &part[0], &part[1], &part[2], &part[3], &part[4], &part[5], &part[6],
                          &part[7], &self->ignored_at, &given, &function, &self->reach[0],
                          &self->size[0], &self->reach[1], &self->size[1])) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "a Batch is made once, without keywords");
        }
        return -1;
    }
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        native_swap(places[i], Py_NewRef(part[i]));
    }
    native_swap((PyObject **)&self->context, Py_NewRef(context));
    copy_structs(self, (const gradb_batch *)(uintptr_t)given);
    void *at = (void *)(uintptr_t)function;
    if (native_can_read(self->side[0].dtype) && native_can_read(self->side[1].dtype)) {
        memcpy(&self->give, &at, sizeof(at));
    }
    return 0;
}

NATIVE_COLLECTED(offsetof(struct batch, context), offsetof(struct batch, metrics),
                 offsetof(struct batch, happenings), offsetof(struct batch, held),
                 offsetof(struct batch, frame), offsetof(struct batch, depth),
                 offsetof(struct batch, code), offsetof(struct batch, instruction),
                 offsetof(struct batch, ignored))

static PyMethodDef methods[] = {
    {"count", (PyCFunction)(void (*)(void))count_call, METH_FASTCALL,
     "count(*arguments of the loss): gives the batch to libgradb; False: not done, as it differs "
     "from the last one"},
    {NULL, NULL, 0, NULL},
};

static char doc[] =
    "Batch(context, metrics, happenings, what holds the structs, sys._getframe, depth of the frame "
    "that calls the loss, its code, its instruction, ignored label or None, number of that "
    "argument or -1, address of a struct gradb_batch, of gradb_metric_batch, (reach, size) of the "
    "outputs, of the labels)";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_init, init_batch},
    {Py_tp_traverse, visit_references},
    {Py_tp_clear, drop_references},
    {Py_tp_dealloc, free_object},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec native_batch_spec = {
    .name = "gradb._native.Batch",
    .basicsize = sizeof(struct batch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
