// SPDX-License-Identifier: MIT
#include "hand_over.h"

#include <stddef.h>

#include "context.h"
#include "idle.h"
#include "names.h"
#include "objects.h"
#include "records.h"

/* Runs on the main thread, between two Python instructions. */
static int take_back_now(void *ctx)
{
    struct native_context *context = ctx;
    if (context != native_handed ||
        native_call(context->agent, native_names.take_back, NULL, NULL, NULL) == 0) {
        return 0;
    }
    return native_report_fault(context);
}

/* Runs on a thread of libgradb's. Where Python's queue of pending calls is full, a backward pass
 * or an optimizer notices a little later. */
static void ask_to_take_back(void *context)
{
    Py_AddPendingCall(take_back_now, context);
}

PyObject *native_hand_over(PyObject *self, PyObject *on)
{
    struct native_context *context = (struct native_context *)self;
    int wanted = PyObject_IsTrue(on);
    if (wanted < 0 || (!wanted && native_publish_path(context) < 0)) {
        return NULL;
    }
    if (wanted != native_is_handed_over(context)) {
        native_handed = wanted ? context : NULL;
        context->on_armed(context->handle, wanted ? ask_to_take_back : NULL,
                          wanted ? context : NULL);
        if (wanted && context->handle && GRADB_IS_ARMED(context->handle)) {
            ask_to_take_back(context);
        }
    }
    return Py_NewRef(Py_None);
}

/* ---- hooks of optimizers --------------------------------------------------------------------- */

static int check_count(Py_ssize_t count)
{
    if (count != 3) {
        PyErr_Format(PyExc_TypeError, "a hook of an optimizer takes 3 arguments, not %zd", count);
        return -1;
    }
    return 0;
}

/* The result of a hook; where `done` is 0, that method of the agent's Optimizers does the work. */
static PyObject *finish_hook(const struct native_context *context, int done, PyObject *method,
                             PyObject *const *args)
{
    if (done != 0) {
        return done < 0 ? NULL : Py_NewRef(Py_None);
    }
    PyObject *optimizers = PyObject_GetAttr(context->agent, native_names.optimizers);
    PyObject *result =
        optimizers ? PyObject_CallMethodObjArgs(optimizers, method, args[0], args[1], args[2], NULL)
                   : NULL;
    Py_XDECREF(optimizers);
    return result;
}

PyObject *native_before_step(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    struct native_context *context = (struct native_context *)self;
    int done = check_count(count);
    if (done == 0) {
        done = native_begin_optimizer(context, args[0], args[1], args[2]);
    }
    return finish_hook(context, done, native_names.before, args);
}

PyObject *native_after_step(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    struct native_context *context = (struct native_context *)self;
    int done = check_count(count);
    if (done == 0) {
        done = native_end_optimizer(context, args[0]);
    }
    return finish_hook(context, done, native_names.after, args);
}

/* ---- torch.compile's setter of frames -------------------------------------------------------- */

/* parts: the Regions, PyTorch's setter, and Python's replacement. Outside compiled code, PyTorch
 * itself calls the setter in each step with None. */
static PyObject *set_frame(PyObject *parts, PyObject *callback)
{
    bool plain =
        callback == Py_None && !native_is_true(PyTuple_GetItem(parts, 0), REGIONS_COMPILED);
    return PyObject_CallFunctionObjArgs(PyTuple_GetItem(parts, plain ? 1 : 2), callback, NULL);
}

PyObject *native_frame_setter(PyObject *module, PyObject *args)
{
    static PyMethodDef definition = {"set_frame", set_frame, METH_O, "see regions.py"};
    (void)module;
    if (PyTuple_Size(args) != 3 || !native_is_a(PyTuple_GetItem(args, 0), NATIVE_REGIONS)) {
        PyErr_SetString(PyExc_TypeError, "frame_setter() takes a Regions and two functions");
        return NULL;
    }
    return PyCFunction_NewEx(&definition, args, NULL);
}

/* ---- modules --------------------------------------------------------------------------------- */

/* Replaces __call__ in the classes of the modules that forward passes begin with. */
struct entrance {
    PyObject ob_base;
    struct native_context *context;
    PyObject *base;     /* torch.nn.Module */
    PyObject *original; /* __call__ of nn.Module without gradb */
    PyObject *wrapper;  /* the same with gradb */
    PyObject *method;   /* types.MethodType */
};

/* A module called inside another one does not begin a forward pass. */
static PyObject *call_wrapper(struct entrance *entrance, PyObject *args, PyObject *keywords)
{
    bool ours = native_is_ours(entrance->context);
    entrance->context->wrapped += ours;
    PyObject *result = PyObject_Call(entrance->wrapper, args, keywords);
    entrance->context->wrapped -= ours;
    return result;
}

static PyObject *call_module(PyObject *object, PyObject *args, PyObject *keywords)
{
    struct entrance *entrance = (struct entrance *)object;
    PyObject *now = PyObject_GetAttr(entrance->base, native_names.call), *result = NULL;
    if (now && (now != entrance->original || PyTuple_Size(args) < 1)) {
        result = PyObject_Call(now, args, keywords); /* somebody has replaced it meanwhile */
    } else if (now) {
        int begins = native_begin_forward(entrance->context, PyTuple_GetItem(args, 0));
        if (begins > 0) {
            result = PyObject_Call(entrance->original, args, keywords);
            native_leave_module(entrance->context);
        } else if (begins == 0) {
            result = call_wrapper(entrance, args, keywords);
        }
    }
    Py_XDECREF(now);
    return result;
}

static PyObject *bind_module(PyObject *object, PyObject *module, PyObject *type)
{
    (void)type;
    if (!module || module == Py_None) {
        return Py_NewRef(object);
    }
    return PyObject_CallFunctionObjArgs(((struct entrance *)object)->method, object, module, NULL);
}

/* For code that copies a class with everything in it: the copy has nn.Module's __call__. */
static PyObject *reduce_entrance(PyObject *object, PyObject *none)
{
    struct entrance *entrance = (struct entrance *)object;
    PyObject *builtins = PyImport_ImportModule("builtins");
    PyObject *get = builtins ? PyObject_GetAttrString(builtins, "getattr") : NULL;
    (void)none;
    Py_XDECREF(builtins);
    return get ? Py_BuildValue("N(OO)", get, entrance->base, native_names.call) : NULL;
}

static int init_entrance(PyObject *object, PyObject *args, PyObject *keywords)
{
    struct entrance *self = (struct entrance *)object;
    PyObject *context, *base, *original, *wrapper, *method;
    if (self->context || keywords ||
        !PyArg_ParseTuple(args, "O!OOOO:Entrance", native_context_type, &context, &base, &original,
                          &wrapper, &method)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "an Entrance is made once, without keywords");
        }
        return -1;
    }
    self->context = (struct native_context *)Py_NewRef(context);
    self->base = Py_NewRef(base);
    self->original = Py_NewRef(original);
    self->wrapper = Py_NewRef(wrapper);
    self->method = Py_NewRef(method);
    return 0;
}

NATIVE_COLLECTED(offsetof(struct entrance, context), offsetof(struct entrance, base),
                 offsetof(struct entrance, original), offsetof(struct entrance, wrapper),
                 offsetof(struct entrance, method))

static PyMethodDef methods[] = {
    {"__reduce__", reduce_entrance, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static char doc[] =
    "Entrance(context, nn.Module, its __call__, the wrapper of that, types.MethodType)";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_init, init_entrance},
    {Py_tp_call, call_module},
    {Py_tp_descr_get, bind_module},
    {Py_tp_methods, methods},
    {Py_tp_traverse, visit_references},
    {Py_tp_clear, drop_references},
    {Py_tp_dealloc, free_object},
    {0, NULL},
};

PyType_Spec native_entrance_spec = {
    .name = "gradb._native.Entrance",
    .basicsize = sizeof(struct entrance),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .slots = slots,
};
