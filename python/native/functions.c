// SPDX-License-Identifier: MIT
#include "functions.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "objects.h"
#include "records.h"

typedef PyObject *(*vectorcall)(PyObject *callable, PyObject *const *args, size_t count,
                                PyObject *names);
#define FLAG (~(SIZE_MAX >> 1)) /* of `count`: the place before the arguments may be used */

/* CPython's own objects have this field last: PyCFunctionObject and PyMethodDescrObject. */
#define CALL 48

#define MOST_HANDLED 16 /* functions in Python, one inside the other */

struct hooked {
    PyObject *callable;
    PyObject *function; /* what the mode is called with for it */
    PyObject *operation;
    vectorcall before; /* NULL: the interpreter calls its C function */
};

static struct {
    struct hooked **at; /* they stay for the life of the process */
    size_t count, room;
    struct native_map places;      /* by address of the callable */
    struct native_operators *mode; /* NULL: the hooks are off */
} hooks;

/* PyTorch's functions, as functions.py has found them; without them nothing is hooked. */
static struct {
    int64_t (*mode_count)(void); /* on this thread's stack of modes */
    uint8_t (*disabled)(void);   /* whether modes are off on this thread */
    bool (*skips)(void);         /* or for the next call */
    PyCFunction pop, push;       /* of the stack of modes */
    PyObject *pop_self, *push_self;
    PyTypeObject *function, *method; /* the types of what is hooked */
    PyObject *aliases; /* dict: method -> those that the mode sees as calls of it (tuple) */
    PyObject *handle;  /* overrides.handle_torch_function */
} torch;

/* ---- the table ------------------------------------------------------------------------------- */

static const struct hooked *find_hooked(const PyObject *callable)
{
    uint32_t place = native_map_get(&hooks.places, callable);
    return place != NATIVE_NONE ? hooks.at[place] : NULL;
}

/* false: out of memory; it belongs to the caller still. */
static bool keep_hooked(struct hooked *own)
{
    if (hooks.count == hooks.room) {
        struct hooked **at = native_grow(hooks.at, &hooks.room, sizeof(*at));
        if (!at) {
            return false;
        }
        hooks.at = at;
    }
    if (!native_map_put(&hooks.places, own->callable, (uint32_t)hooks.count)) {
        return false;
    }
    hooks.at[hooks.count++] = own;
    return true;
}

static vectorcall get_call(PyObject *callable)
{
    vectorcall call;
    memcpy(&call, (const char *)callable + CALL, sizeof(call));
    return call;
}

static void set_call(PyObject *callable, vectorcall call)
{
    memcpy((char *)callable + CALL, &call, sizeof(call));
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* The arguments of one call, for the function without its hook. */
struct arguments {
    const struct hooked *own;
    PyObject *const *args;
    size_t count;
    PyObject *names;
};

static PyObject *pack_args(PyObject *const *args, size_t count)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; tuple && i < count; i++) {
        PyTuple_SetItem(tuple, (Py_ssize_t)i, Py_NewRef(args[i])); /* steals the reference */
    }
    return tuple;
}

/* values: the arguments after those without a name. None where there are no names. */
static PyObject *pack_keywords(PyObject *const *values, PyObject *names)
{
    if (!names || PyTuple_Size(names) == 0) {
        return Py_NewRef(Py_None);
    }
    PyObject *dict = PyDict_New();
    for (Py_ssize_t i = 0; dict && i < PyTuple_Size(names); i++) {
        if (PyDict_SetItem(dict, PyTuple_GetItem(names, i), values[i]) < 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

/* As the interpreter calls a function of C that takes a tuple and a dict. */
static PyObject *call_method(const struct hooked *own, PyObject *args, PyObject *keywords)
{
    PyCFunction method = PyCFunction_GetFunction(own->callable);
    return ((PyCFunctionWithKeywords)(void (*)(void))method)(
        PyCFunction_GetSelf(own->callable), args, keywords == Py_None ? NULL : keywords);
}

/* The call without the hook. */
static PyObject *call_unhooked(const struct arguments *given)
{
    if (given->own->before) {
        return given->own->before(given->own->callable, given->args, given->count, given->names);
    }
    size_t count = given->count & ~FLAG;
    PyObject *args = pack_args(given->args, count);
    PyObject *keywords = args ? pack_keywords(given->args + count, given->names) : NULL;
    PyObject *result = keywords ? call_method(given->own, args, keywords) : NULL;
    Py_XDECREF(keywords);
    Py_XDECREF(args);
    return result;
}

/* The call itself. */
static PyObject *run_plainly(const struct native_call *call)
{
    const struct arguments *given = call->ctx;
    if (!given) {
        return PyObject_Call(call->function, call->args,
                             call->keywords == Py_None ? NULL : call->keywords);
    }
    return given->own->before ? call_unhooked(given)
                              : call_method(given->own, call->args, call->keywords);
}

/* Takes the mode off, like PyTorch's _pop_mode_temporarily, where it would see the call and no
 * other mode would. NULL without an exception: it would not, and nothing was done. */
static PyObject *take_mode(void)
{
    const struct native_context *context = hooks.mode ? hooks.mode->context : NULL;
    if (!context || !context->handle || !native_is_true(context->agent, AGENT_WATCHING_NOW) ||
        !native_is_ours(context) || torch.mode_count() != 1 || torch.disabled() != 0 ||
        torch.skips()) {
        return NULL;
    }
    PyObject *mode = torch.pop(torch.pop_self, NULL);
    if (mode && mode != (PyObject *)hooks.mode) { /* ours is off, and this one the program's */
        Py_XDECREF(torch.push(torch.push_self, mode));
        Py_CLEAR(mode);
    }
    return mode;
}

/* Puts it on again, unless nobody watches any more. -1: there is an exception, now or before. */
static int put_mode(PyObject *mode)
{
    struct native_error error = native_take_error();
    bool wanted = mode == (PyObject *)hooks.mode;
    PyObject *done = wanted ? torch.push(torch.push_self, mode) : Py_NewRef(Py_None);
    Py_XDECREF(done);
    Py_DECREF(mode);
    if (error.type && done) {
        native_restore_error(error);
        return -1;
    }
    native_drop_error(error);
    return done ? 0 : -1;
}

/* Does and reports a call below the mode: what is asked of tensors for the report is not the
 * program's either. NULL without an exception: it is not usual, and nothing was done. */
static PyObject *run_usual(struct native_call *call, PyObject *operation)
{
    int usual = native_is_usual_call(call, operation);
    if (usual < 0) {
        native_report_fault(call->mode->context); /* an interrupt stays set */
    }
    return usual > 0 ? native_run_usual(call, operation) : NULL;
}

static PyObject *call_hooked(PyObject *callable, PyObject *const *args, size_t count,
                             PyObject *names)
{
    struct arguments given = {find_hooked(callable), args, count, names};
    PyObject *mode = take_mode();
    if (!mode) {
        return PyErr_Occurred() ? NULL : call_unhooked(&given);
    }
    size_t plain = count & ~FLAG;
    PyObject *tuple = pack_args(args, plain);
    PyObject *keywords = tuple ? pack_keywords(args + plain, names) : NULL;
    struct native_call call = {.mode = hooks.mode,
                               .function = given.own->function,
                               .args = tuple,
                               .keywords = keywords,
                               .run = run_plainly,
                               .ctx = &given};
    PyObject *result = keywords ? run_usual(&call, given.own->operation) : NULL;
    if (put_mode(mode) < 0) {
        Py_CLEAR(result);
    } else if (!result) {
        result = call_unhooked(&given);
    }
    Py_XDECREF(keywords);
    Py_XDECREF(tuple);
    return result;
}

/* ---- functions in Python --------------------------------------------------------------------- */

/* handle_torch_function(function, tensors, ...) as PyTorch has it. */
static PyObject *handle_by_torch(PyObject *const *args, size_t count, PyObject *names)
{
    PyObject *tuple = pack_args(args, count);
    PyObject *keywords = tuple ? pack_keywords(args + count, names) : NULL;
    PyObject *result =
        keywords ? PyObject_Call(torch.handle, tuple, keywords == Py_None ? NULL : keywords) : NULL;
    Py_XDECREF(keywords);
    Py_XDECREF(tuple);
    return result;
}

/* The functions that native_handle calls a second time, outermost first. */
static struct {
    PyObject *at[MOST_HANDLED];
    size_t count;
} handled;

/* The function's operator, borrowed, where no subclass overrides it; NULL: PyTorch decides. */
static PyObject *find_own_operator(PyObject *function, PyObject *tensors)
{
    const struct native_context *context = hooks.mode ? hooks.mode->context : NULL;
    if (!context || !PyTuple_Check(tensors) || handled.count == MOST_HANDLED) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(tensors); i++) {
        PyObject *tensor = PyTuple_GetItem(tensors, i), *type = (PyObject *)Py_TYPE(tensor);
        if (type != context->tensor && type != context->parameter && tensor != Py_None) {
            return NULL;
        }
    }
    PyObject *operation = PyDict_GetItemWithError(hooks.mode->known, function);
    PyErr_Clear(); /* it is not hashable */
    return operation != Py_None ? operation : NULL;
}

PyObject *native_handled(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return pack_args(handled.at, handled.count);
}

/* Calls it again, without the mode. NULL without an exception: PyTorch must do it. */
static PyObject *handle_call(PyObject *operation, PyObject *function, PyObject *args,
                             PyObject *keywords)
{
    PyObject *mode = take_mode();
    if (!mode) {
        return NULL;
    }
    struct native_call call = {.mode = hooks.mode,
                               .function = function,
                               .args = args,
                               .keywords = keywords,
                               .run = run_plainly};
    handled.at[handled.count++] = function;
    PyObject *result = run_usual(&call, operation);
    handled.count--;
    if (put_mode(mode) < 0) {
        Py_CLEAR(result);
    }
    return result;
}

PyObject *native_handle(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    (void)module;
    PyObject *operation = count >= 2 ? find_own_operator(args[0], args[1]) : NULL;
    PyObject *result = NULL;
    if (operation) {
        PyObject *tuple = pack_args(args + 2, (size_t)count - 2);
        PyObject *keywords = tuple ? pack_keywords(args + count, names) : NULL;
        result = keywords ? handle_call(operation, args[0], tuple, keywords) : NULL;
        Py_XDECREF(keywords);
        Py_XDECREF(tuple);
    }
    return result || PyErr_Occurred() ? result : handle_by_torch(args, (size_t)count, names);
}

/* ---- on and off ------------------------------------------------------------------------------ */

static bool is_hookable(PyObject *callable)
{
    const PyTypeObject *type = Py_TYPE(callable);
    if (type == torch.method) {
        return true; /* functions.py has looked */
    }
    return type == torch.function &&
           PyCFunction_GetFlags(callable) == (METH_VARARGS | METH_KEYWORDS) && !get_call(callable);
}

static void add_hooked(PyObject *callable, PyObject *function, PyObject *operation)
{
    if (find_hooked(callable) || !is_hookable(callable)) {
        return;
    }
    struct hooked *own = calloc(1, sizeof(*own));
    if (!own) {
        return; /* its calls go through the mode */
    }
    *own = (struct hooked){callable, function, operation, get_call(callable)};
    if (!keep_hooked(own)) {
        free(own);
        return;
    }
    Py_INCREF(callable);
    Py_INCREF(function);
    Py_INCREF(operation);
    set_call(callable, call_hooked);
}

void native_note_function(const struct native_call *call, PyObject *operation)
{
    PyObject *function = call->function;
    if (hooks.mode != call->mode || !torch.mode_count) {
        return;
    }
    if (Py_TYPE(function) == torch.function) {
        add_hooked(function, function, operation);
    }
    PyObject *all =
        Py_TYPE(function) == torch.method ? PyDict_GetItemWithError(torch.aliases, function) : NULL;
    for (Py_ssize_t i = 0; all && i < PyTuple_Size(all); i++) {
        add_hooked(PyTuple_GetItem(all, i), function, operation);
    }
    PyErr_Clear();
}

PyObject *native_hook_functions(PyObject *module, PyObject *mode)
{
    (void)module;
    bool on = mode != Py_None && torch.mode_count;
    for (size_t i = 0; i < hooks.count; i++) {
        set_call(hooks.at[i]->callable, on ? call_hooked : hooks.at[i]->before);
    }
    native_swap((PyObject **)&hooks.mode, on ? Py_NewRef(mode) : NULL);
    return PyBool_FromLong(on);
}

PyObject *native_hook_by(PyObject *module, PyObject *args)
{
    PyObject *pop, *push, *function, *method, *aliases, *handle;
    unsigned long long address[3];
    (void)module;
    if (!PyArg_ParseTuple(args, "(KKK)OOO!O!O!O:hook_by", &address[0], &address[1], &address[2],
                          &pop, &push, &PyType_Type, &function, &PyType_Type, &method, &PyDict_Type,
                          &aliases, &handle)) {
        return NULL;
    }
    if (!PyCFunction_GetFunction(pop) || !PyCFunction_GetFunction(push)) {
        return NULL;
    }
    torch.pop = PyCFunction_GetFunction(pop);
    torch.push = PyCFunction_GetFunction(push);
    native_swap(&torch.pop_self, Py_XNewRef(PyCFunction_GetSelf(pop)));
    native_swap(&torch.push_self, Py_XNewRef(PyCFunction_GetSelf(push)));
    native_swap((PyObject **)&torch.function, Py_NewRef(function));
    native_swap((PyObject **)&torch.method, Py_NewRef(method));
    native_swap(&torch.aliases, Py_NewRef(aliases));
    native_swap(&torch.handle, Py_NewRef(handle));
    torch.disabled = (uint8_t(*)(void))(uintptr_t)address[1];
    torch.skips = (bool (*)(void))(uintptr_t)address[2];
    torch.mode_count = (int64_t(*)(void))(uintptr_t)address[0];
    return Py_NewRef(Py_None);
}
