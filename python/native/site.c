// SPDX-License-Identifier: MIT
#include "site.h"

#include "names.h"
#include "numbers.h"
#include "objects.h"
#include "records.h"
#include "tensors.h"

#define MAX_PLACES 64 /* items of a site, as in stack.py */

/* Whose code it is, as in stack.py. */
enum kind { KIND_USER, KIND_PACKAGE, KIND_LIBRARY, KIND_OURS };

/* What stack.py knows of a code object. */
enum known { KNOWN_CODE, KNOWN_KIND, KNOWN_NUMBER };

/* A look at the stack, from the innermost frame outwards. */
struct look {
    struct native_context *context;
    PyObject *outermost; /* code object: only what is outside its last frame counts; NULL: all */
    PyObject *places;    /* list: number of code, instruction, ... */
    PyObject *inner;     /* the innermost code object that is not ours; NULL: not met yet */
    bool named;          /* the function that gives the scope was met, see stack.function() */
    bool packaged;       /* a package's code runs inside of it: the places do not say which */
    Py_ssize_t met;      /* of `outermost` */
};

static int add_place(struct look *look, PyObject *frame, PyObject *number)
{
    PyObject *instruction = PyObject_GetAttr(frame, native_names.f_lasti);
    int status = instruction ? PyList_Append(look->places, number) : -1;
    status = status == 0 ? PyList_Append(look->places, instruction) : -1;
    Py_XDECREF(instruction);
    return status;
}

/* Like stack.function() and scope_name(), for the user's code. */
static int look_for_scope(struct look *look, PyObject *code, long kind)
{
    if (look->named || (kind != KIND_USER && kind != KIND_PACKAGE)) {
        return 0;
    }
    look->packaged |= kind == KIND_PACKAGE;
    PyObject *name = PyObject_GetAttr(code, native_names.co_name);
    look->named = name && (PyUnicode_ReadChar(name, 0) != '<' ||
                           PyUnicode_CompareWithASCIIString(name, "<module>") == 0);
    Py_XDECREF(name);
    return PyErr_Occurred() ? -1 : 0;
}

/* 1; 0: the code is not known yet; -1. */
static int look_at_frame(struct look *look, PyObject *frame, PyObject *code)
{
    PyObject *key = PyLong_FromVoidPtr(code);
    PyObject *known = key ? PyDict_GetItemWithError(look->context->codes, key) : NULL;
    Py_XDECREF(key);
    if (!known || PyTuple_GetItem(known, KNOWN_CODE) != code) {
        return PyErr_Occurred() ? -1 : 0;
    }
    long kind = PyLong_AsLong(PyTuple_GetItem(known, KNOWN_KIND));
    if (!look->inner && kind != KIND_OURS) {
        look->inner = Py_NewRef(code);
    }
    if (look_for_scope(look, code, kind) < 0) {
        return -1;
    }
    if (code == look->outermost) {
        look->met++;
        return PyList_SetSlice(look->places, 0, PY_SSIZE_T_MAX, NULL) < 0 ? -1 : 1;
    }
    PyObject *number = PyTuple_GetItem(known, KNOWN_NUMBER);
    if (number == native_zero || PyList_Size(look->places) >= MAX_PLACES) {
        return 1;
    }
    return add_place(look, frame, number) < 0 ? -1 : 1;
}

/* The same for all frames. */
static int look_at_stack(struct look *look)
{
    PyObject *frame = Py_XNewRef((PyObject *)PyEval_GetFrame());
    int known = 1;
    while (known > 0 && frame && frame != Py_None) {
        PyObject *code = PyObject_GetAttr(frame, native_names.f_code);
        known = code ? look_at_frame(look, frame, code) : -1;
        Py_XDECREF(code);
        PyObject *back = known > 0 ? PyObject_GetAttr(frame, native_names.f_back) : NULL;
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return PyErr_Occurred() ? -1 : known;
}

/* Like steps.Steps.micro_batch; -1 with an exception. */
static long find_batch(struct native_context *context)
{
    PyObject *steps = context->steps;
    if (!native_is_true(steps, STEPS_FORWARD) || !native_is_zero(steps, STEPS_PASSES) ||
        (native_is_true(steps, STEPS_IN_CLOSURE) && native_get_int(steps, STEPS_CLOSURES) > 1)) {
        return PyErr_Occurred() ? -1 : 0;
    }
    PyObject *given = native_give_numbers((PyObject *)context, NULL);
    Py_XDECREF(given);
    long passes = given ? native_get_int(context->events, EVENTS_PASSES) : -1;
    return passes < 0 ? -1 : passes + 1;
}

/* In the pass of one micro-batch a site is one of its own, see modules.Modules._in_batch. */
static PyObject *find_in_batch(struct native_context *context, PyObject *site)
{
    long batch = find_batch(context);
    if (batch <= 0) {
        return batch == 0 ? Py_NewRef(site) : NULL;
    }
    PyObject *key = Py_BuildValue("(OlO)", site, batch, Py_None);
    PyObject *found = key ? Py_XNewRef(PyDict_GetItemWithError(context->sites, key)) : NULL;
    Py_XDECREF(key);
    return found;
}

/* Borrowed; NULL without an exception: there is none yet. */
static PyObject *find_known_site(const struct look *look)
{
    PyObject *key = PyList_AsTuple(look->places);
    PyObject *site =
        key && PyTuple_Size(key) > 0 ? PyDict_GetItemWithError(look->context->sites, key) : NULL;
    Py_XDECREF(key);
    return site;
}

static void end_look(struct look *look)
{
    Py_XDECREF(look->outermost);
    Py_XDECREF(look->places);
    Py_XDECREF(look->inner);
}

PyObject *native_find_site(struct native_context *context)
{
    PyObject *modules =
        context->codes ? PyObject_GetAttr(context->agent, native_names.modules) : NULL;
    struct look look = {.context = context};
    look.outermost = modules ? PyObject_GetAttr(modules, native_names.code) : NULL;
    look.places = look.outermost ? PyList_New(0) : NULL;
    int known = look.places ? look_at_stack(&look) : PyErr_Occurred() ? -1 : 0;
    PyObject *site = known > 0 && look.met > 0 ? find_known_site(&look) : NULL;
    site = site ? find_in_batch(context, site) : NULL;
    if (site && PyObject_SetAttr(context->local, native_names.site, site) < 0) {
        Py_CLEAR(site);
    }
    Py_XDECREF(modules);
    end_look(&look);
    return site;
}

/* The scope that reporter.outer_scope has found for the same place; borrowed. */
static PyObject *find_scope(const struct look *look, PyObject *site)
{
    struct native_context *context = look->context;
    int gradients = native_has_gradients(context->has_gradients);
    PyObject *code = look->inner && gradients >= 0 ? PyLong_FromVoidPtr(look->inner) : NULL;
    PyObject *key = code ? PyTuple_Pack(3, site, code, gradients ? Py_True : Py_False) : NULL;
    PyObject *found = key ? PyDict_GetItemWithError(context->scopes, key) : NULL;
    Py_XDECREF(key);
    Py_XDECREF(code);
    return found && PyTuple_GetItem(found, 0) == look->inner ? PyTuple_GetItem(found, 1) : NULL;
}

static PyObject *make_key(const struct look *look, PyObject *name)
{
    PyObject *site = find_known_site(look);
    PyObject *scope = site ? find_scope(look, site) : NULL;
    PyObject *own = scope ? find_in_batch(look->context, site) : NULL;
    PyObject *key = own ? PyTuple_Pack(3, scope, name, own) : NULL;
    Py_XDECREF(own);
    return key;
}

PyObject *native_outer_key(struct native_context *context, PyObject *name)
{
    struct look look = {.context = context, .places = context->codes ? PyList_New(0) : NULL};
    int known = look.places ? look_at_stack(&look) : PyErr_Occurred() ? -1 : 0;
    PyObject *key = known > 0 && look.named && !look.packaged ? make_key(&look, name) : NULL;
    end_look(&look);
    return key;
}

/* ---- modules --------------------------------------------------------------------------------- */

/* What the table has; see modules.Modules.paths. */
enum path { PATH_MODULE, PATH_TRAINING, PATH_EVALUATION };

/* vars(module)["_compiled_call_impl"] is set: its inside cannot be seen. */
static int is_compiled(PyObject *module)
{
    PyObject *vars = PyObject_GenericGetDict(module, NULL);
    PyObject *call = vars ? PyDict_GetItemWithError(vars, native_names.compiled_call) : NULL;
    int compiled = call && call != Py_None;
    Py_XDECREF(vars);
    return PyErr_Occurred() ? -1 : compiled;
}

/* The path inside the module, borrowed; NULL without an exception: Python must determine it. */
static PyObject *find_path(struct native_context *context, PyObject *module)
{
    PyObject *key = PyLong_FromVoidPtr(module);
    PyObject *known = key ? PyDict_GetItemWithError(context->paths, key) : NULL;
    Py_XDECREF(key);
    if (!known || PyWeakref_GetObject(PyTuple_GetItem(known, PATH_MODULE)) != module ||
        is_compiled(module) != 0) {
        return NULL;
    }
    PyObject *evaluates = PyObject_GetAttr(context->local, native_names.evaluates);
    Py_XDECREF(evaluates); /* True or False, which last */
    return evaluates
               ? PyTuple_GetItem(known, evaluates == Py_True ? PATH_EVALUATION : PATH_TRAINING)
               : NULL;
}

/* A module that is called now is inside another one, and its operators are watched. */
static bool is_inside(const struct native_context *context)
{
    return context->handle && context->paths &&
           native_is_true(context->agent, AGENT_WATCHING_NOW) &&
           native_is_true(context->steps, STEPS_FORWARD) && native_is_ours(context) &&
           native_truth(context->agent, AGENT_DEAD) == 0;
}

PyObject *native_enter_module(PyObject *object, PyObject *module)
{
    struct native_context *context = (struct native_context *)object;
    PyObject *before =
        is_inside(context) ? PyObject_GetAttr(context->local, native_names.path) : NULL;
    bool nested = before && PyUnicode_Check(before) && PyUnicode_GetLength(before) > 0;
    PyObject *path = nested ? find_path(context, module) : NULL;
    if (path && PyObject_SetAttr(context->local, native_names.path, path) == 0) {
        return before;
    }
    Py_XDECREF(before);
    PyErr_Clear(); /* Python finds out what is wrong */
    return Py_NewRef(Py_None);
}

PyObject *native_use_sites(PyObject *object, PyObject *args)
{
    struct native_context *context = (struct native_context *)object;
    PyObject *codes, *sites, *scopes, *paths;
    if (!PyArg_ParseTuple(args, "O!O!O!O!:use_sites", &PyDict_Type, &codes, &PyDict_Type, &sites,
                          &PyDict_Type, &scopes, &PyDict_Type, &paths)) {
        return NULL;
    }
    native_swap(&context->codes, Py_NewRef(codes));
    native_swap(&context->sites, Py_NewRef(sites));
    native_swap(&context->scopes, Py_NewRef(scopes));
    native_swap(&context->paths, Py_NewRef(paths));
    return Py_NewRef(Py_None);
}
