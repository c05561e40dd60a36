// SPDX-License-Identifier: MIT
/* Whether somebody sets the gradients back, over idle steps: see training.Clearing, of which this
 * is the base. What is looked at in each pass lies side by side here. */
#include "native.h"

#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

#define ALWAYS 8 /* steps */

/* ---- the gradient that is watched ------------------------------------------------------------ */

/* What tells one state of a gradient from another; both 0: there is none. */
struct state {
    unsigned long long identity;
    long long version;
};

static int state_of(PyObject *gradient, struct state *ret)
{
    *ret = (struct state){0, 0};
    if (gradient == Py_None) {
        return 0;
    }
    PyObject *version = native_version(gradient);
    ret->identity = (unsigned long long)(uintptr_t)gradient; /* what id() gives */
    ret->version = version ? PyLong_AsLongLong(version) : -1;
    Py_XDECREF(version);
    return ret->version == -1 ? -1 : 0; /* there are no negative ones */
}

/* What a weak reference refers to, borrowed; NULL: it is gone, or there is no reference. */
static PyObject *referred(PyObject *reference)
{
    PyObject *object = reference && reference != Py_None ? PyWeakref_GetObject(reference) : NULL;
    return object != Py_None ? object : NULL;
}

/* The gradient and its state; None: the parameter has none, or is gone. */
static PyObject *gradient_of(const struct native_clearing *clearing, struct state *ret)
{
    PyObject *parameter = Py_XNewRef(referred(clearing->parameter));
    bool has_none = !parameter || native_has_no_gradient(parameter);
    PyObject *gradient =
        has_none ? Py_NewRef(Py_None) : PyObject_GetAttr(parameter, native_names.grad);
    Py_XDECREF(parameter);
    if (gradient && state_of(gradient, ret) < 0) {
        Py_CLEAR(gradient);
    }
    return gradient;
}

static bool is_as_seen(const struct native_clearing *clearing, const struct state *state)
{
    return state->identity == clearing->seen && state->version == clearing->version;
}

static void see(struct native_clearing *clearing, const struct state *state)
{
    clearing->seen = state->identity;
    clearing->version = state->version;
}

/* There is nothing to look for in this step. */
static bool is_over(const struct native_clearing *clearing)
{
    return clearing->cleared || clearing->since != 0;
}

/* The one of another optimizer; NULL: that was the last. */
static struct native_clearing *next_of(const struct native_clearing *clearing)
{
    return clearing->next != Py_None ? (struct native_clearing *)clearing->next : NULL;
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Nobody seems to have touched it since the last step: whether it is 0 all the same is for Python
 * to find out. */
static int guess(struct native_clearing *clearing, PyObject *gradient)
{
    if (clearing->added) {
        return 0;
    }
    clearing->looked = false;
    if (clearing->asks) {
        return native_call((PyObject *)clearing, native_names.look_at, gradient, NULL, NULL);
    }
    clearing->cleared = clearing->believed;
    return 0;
}

static int begins(struct native_clearing *clearing)
{
    struct state state;
    PyObject *gradient = gradient_of(clearing, &state);
    int status = gradient ? 0 : -1;
    clearing->gone = gradient == Py_None ? clearing->gone + 1 : 0;
    if (gradient && (gradient == Py_None || !is_as_seen(clearing, &state))) {
        clearing->cleared = true;
    } else if (gradient) {
        status = guess(clearing, gradient);
    }
    Py_XDECREF(gradient);
    return status;
}

/* The program always throws the gradient away: it need not be looked at now to see that again. Of
 * the one that it does not throw away some day nothing is known then, and it is found a step late.
 */
static bool goes_as_always(const struct native_clearing *clearing)
{
    return clearing->gone >= ALWAYS && clearing->gone % ALWAYS != 0;
}

static int ends(struct native_clearing *clearing)
{
    struct state state;
    if (is_over(clearing) && goes_as_always(clearing)) {
        return 0;
    }
    PyObject *gradient = gradient_of(clearing, &state);
    if (!gradient) {
        return -1;
    }
    clearing->left = state.identity;
    clearing->left_version = state.version;
    if (!is_over(clearing)) {
        clearing->added |= gradient != Py_None && !is_as_seen(clearing, &state);
        see(clearing, &state);
    }
    Py_DECREF(gradient);
    return 0;
}

static int begins_unless_over(struct native_clearing *clearing)
{
    return is_over(clearing) ? 0 : begins(clearing);
}

/* A mode of the program's, and a class of parameters of its own, must not see it. */
static int apart(const struct native_context *context, struct native_clearing *clearing,
                 int (*look)(struct native_clearing *))
{
    PyObject *parameter = referred(clearing->parameter);
    PyObject *none = native_enter_apart_for(context, parameter ? parameter : Py_None);
    if (!none) {
        return -1;
    }
    int status = look(clearing);
    return native_leave_apart(none) < 0 ? -1 : status;
}

static int for_each(struct native_context *context, int (*look)(struct native_clearing *))
{
    int status = 0;
    for (struct native_clearing *clearing = context->clearing; status == 0 && clearing;
         clearing = next_of(clearing)) {
        status = apart(context, clearing, look);
    }
    return status;
}

int native_clearing_begins(struct native_context *context)
{
    return for_each(context, begins_unless_over);
}

int native_clearing_ends(struct native_context *context)
{
    return for_each(context, ends);
}

/* ---- an optimizer has stepped ---------------------------------------------------------------- */

/* 1: what was set back is watched again; 0: it has no gradient now; -1. */
static int watch_again(struct native_clearing *clearing)
{
    struct state state = {0, 0};
    int status = 1;
    if (!goes_as_always(clearing)) {
        PyObject *gradient = gradient_of(clearing, &state);
        status = gradient ? gradient != Py_None : -1;
        Py_XDECREF(gradient);
    }
    if (status > 0) {
        clearing->asks = clearing->asks && !clearing->looked;
        clearing->added = clearing->looked = clearing->cleared = false;
        see(clearing, &state);
    }
    return status;
}

int native_clearing_stepped(struct native_context *context, PyObject *optimizer)
{
    struct native_clearing *clearing = context->clearing;
    while (clearing && referred(clearing->optimizer) != optimizer) {
        clearing = next_of(clearing);
    }
    int status = 0;
    if (clearing) {
        status = clearing->since != 0 ? 1
                 : clearing->cleared  ? apart(context, clearing, watch_again)
                                      : 0;
    }
    if (status != 0) {
        return status < 0 ? -1 : 0;
    }
    return native_call(native_get(context->agent, AGENT_CLEARING), native_names.stepped, optimizer,
                       NULL, NULL);
}

/* ---- the type -------------------------------------------------------------------------------- */

static const size_t references[] = {offsetof(struct native_clearing, next),
                                    offsetof(struct native_clearing, optimizer),
                                    offsetof(struct native_clearing, parameter), 0};

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

#define MEMBER(name, type, field)                                                                  \
    {                                                                                              \
        name, type, offsetof(struct native_clearing, field), 0, NULL                               \
    }

static PyMemberDef members[] = {
    MEMBER("next", T_OBJECT, next),
    MEMBER("_optimizer", T_OBJECT, optimizer),
    MEMBER("_parameter", T_OBJECT, parameter),
    MEMBER("since", T_LONGLONG, since),
    MEMBER("_seen", T_ULONGLONG, seen),
    MEMBER("_version", T_LONGLONG, version),
    MEMBER("_cleared", T_BOOL, cleared),
    MEMBER("_added", T_BOOL, added),
    MEMBER("_looked", T_BOOL, looked),
    MEMBER("_asks", T_BOOL, asks),
    MEMBER("_believed", T_BOOL, believed),
    MEMBER("_left", T_ULONGLONG, left),
    MEMBER("_left_version", T_LONGLONG, left_version),
    {NULL, 0, 0, 0, NULL},
};

static char doc[] = "The base of training.Clearing.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},     {Py_tp_members, members}, {Py_tp_traverse, traverse},
    {Py_tp_clear, clear}, {Py_tp_dealloc, dealloc}, {0, NULL},
};

PyType_Spec native_clearing_spec = {
    .name = "gradb._native.Clearing",
    .basicsize = sizeof(struct native_clearing),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
