// SPDX-License-Identifier: MIT
/*
 * While steps are idle, Python's wrappers stand aside: of modules only those that forward passes
 * begin with are heard of (Entrance), and the hooks of optimizers are methods of a context. That is
 * over at once when the debugger wants to hear of nodes, in whatever the training is by then.
 */
#include "native.h"

#include <stddef.h>

/* The one that was handed over to, borrowed; NULL: none. Under the interpreter's lock. */
static struct native_context *handed;

bool native_is_handed_over(const struct native_context *context)
{
    return context == handed;
}

/* On the main thread, between two instructions of Python. */
static int take_back(void *ctx)
{
    struct native_context *context = ctx;
    if (context != handed ||
        native_call(context->agent, native_names.take_back, NULL, NULL, NULL) == 0) {
        return 0;
    }
    return native_fault(context);
}

/* On a thread of libgradb's. Where Python has no room for it, a backward pass or an optimizer hears
 * of it a little later. */
static void on_armed(void *context)
{
    Py_AddPendingCall(take_back, context);
}

PyObject *native_hand_over(PyObject *self, PyObject *on)
{
    struct native_context *context = (struct native_context *)self;
    int wanted = PyObject_IsTrue(on);
    if (wanted < 0 || (!wanted && native_tell_path(context) < 0)) {
        return NULL;
    }
    if (wanted != native_is_handed_over(context)) {
        handed = wanted ? context : NULL;
        context->on_armed(context->handle, wanted ? on_armed : NULL, wanted ? context : NULL);
        if (wanted && context->handle && GRADB_IS_ARMED(context->handle)) {
            on_armed(context);
        }
    }
    return Py_NewRef(Py_None);
}

void native_forget_handed(const struct native_context *context)
{
    if (native_is_handed_over(context)) {
        handed = NULL;
    }
}

/* ---- hooks of optimizers --------------------------------------------------------------------- */

static int expect_three(Py_ssize_t count)
{
    if (count != 3) {
        PyErr_Format(PyExc_TypeError, "a hook of optimizers takes 3 arguments, not %zd", count);
        return -1;
    }
    return 0;
}

/* What a hook returns, whose work is done by now, or is for that method of the agent's optimizers.
 */
static PyObject *hooked(const struct native_context *context, int done, PyObject *method,
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
    int done = expect_three(count);
    if (done == 0) {
        done = native_step_begins(context, args[0], args[1], args[2]);
    }
    return hooked(context, done, native_names.before, args);
}

PyObject *native_after_step(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    struct native_context *context = (struct native_context *)self;
    int done = expect_three(count);
    if (done == 0) {
        done = native_step_ended(context, args[0]);
    }
    return hooked(context, done, native_names.after, args);
}

/* ---- torch.compile's setter of frames -------------------------------------------------------- */

/* `parts`: the Regions, torch's setter, and what Python has put in its place. Outside of compiled
 * code torch itself calls it in each step, with None. */
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

/* What stands as __call__ in the classes of modules that forward passes begin with. */
struct entrance {
    PyObject_HEAD struct native_context *context;
    PyObject *base;     /* torch.nn.Module */
    PyObject *original; /* its __call__ without gradb */
    PyObject *wrapper;  /* with it */
    PyObject *method;   /* types.MethodType */
};

/* All else is Python's. What is called inside of the module does not begin a forward pass. */
static PyObject *call_wrapper(struct entrance *entrance, PyObject *args, PyObject *keywords)
{
    bool ours = native_is_ours(entrance->context);
    entrance->context->wrapped += ours;
    PyObject *result = PyObject_Call(entrance->wrapper, args, keywords);
    entrance->context->wrapped -= ours;
    return result;
}

static PyObject *call(PyObject *object, PyObject *args, PyObject *keywords)
{
    struct entrance *entrance = (struct entrance *)object;
    PyObject *now = PyObject_GetAttr(entrance->base, native_names.call), *result = NULL;
    if (now && (now != entrance->original || PyTuple_Size(args) < 1)) {
        result = PyObject_Call(now, args, keywords); /* somebody else has put one there meanwhile */
    } else if (now) {
        int begins = native_begins_with(entrance->context, PyTuple_GetItem(args, 0));
        if (begins > 0) {
            result = PyObject_Call(entrance->original, args, keywords);
            native_leaves(entrance->context);
        } else if (begins == 0) {
            result = call_wrapper(entrance, args, keywords);
        }
    }
    Py_XDECREF(now);
    return result;
}

static PyObject *bind(PyObject *object, PyObject *module, PyObject *type)
{
    (void)type;
    if (!module || module == Py_None) {
        return Py_NewRef(object);
    }
    return PyObject_CallFunctionObjArgs(((struct entrance *)object)->method, object, module, NULL);
}

/* For who copies a class with all that is in it: there it is what it stands for. */
static PyObject *reduce(PyObject *object, PyObject *none)
{
    struct entrance *entrance = (struct entrance *)object;
    PyObject *builtins = PyImport_ImportModule("builtins");
    PyObject *get = builtins ? PyObject_GetAttrString(builtins, "getattr") : NULL;
    (void)none;
    Py_XDECREF(builtins);
    return get ? Py_BuildValue("N(OO)", get, entrance->base, native_names.call) : NULL;
}

static int init(PyObject *object, PyObject *args, PyObject *keywords)
{
    struct entrance *self = (struct entrance *)object;
    PyObject *context, *base, *original, *wrapper, *method;
    if (self->context || keywords ||
        !PyArg_ParseTuple(args, "OOOOO:Entrance", &context, &base, &original, &wrapper, &method) ||
        !PyObject_TypeCheck(context, native_context_type)) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError,
                            "an Entrance is made once, of a Context and four more");
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

static const size_t references[] = {
    offsetof(struct entrance, context),  offsetof(struct entrance, base),
    offsetof(struct entrance, original), offsetof(struct entrance, wrapper),
    offsetof(struct entrance, method),   0};

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
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static char doc[] =
    "Entrance(context, nn.Module, its __call__, the wrapper of that, types.MethodType)";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},        {Py_tp_init, init},       {Py_tp_call, call},
    {Py_tp_descr_get, bind}, {Py_tp_methods, methods}, {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},    {Py_tp_dealloc, dealloc}, {0, NULL},
};

PyType_Spec native_entrance_spec = {
    .name = "gradb._native.Entrance",
    .basicsize = sizeof(struct entrance),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .slots = slots,
};
