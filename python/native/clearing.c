// SPDX-License-Identifier: MIT
#include "clearing.h"

#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

#include "clock.h"
#include "names.h"
#include "objects.h"
#include "records.h"
#include "tensors.h"

PyTypeObject *native_clearing_type;

#define ALWAYS_STEPS 8 /* steps */

/* ---- the gradient that is watched ------------------------------------------------------------ */

/* Identifies a state of a gradient; both 0: there is no gradient. */
struct state {
    unsigned long long identity;
    long long version;
};

static int read_state(PyObject *gradient, struct state *ret)
{
    *ret = (struct state){0, 0};
    if (gradient == Py_None) {
        return 0;
    }
    PyObject *version = native_version(gradient);
    ret->identity = (unsigned long long)(uintptr_t)gradient; /* what id() gives */
    ret->version = version ? PyLong_AsLongLong(version) : -1;
    Py_XDECREF(version);
    return ret->version == -1 ? -1 : 0; /* versions are never negative */
}

/* The referent of a weak reference, borrowed; NULL: it is gone, or there is no reference. */
static PyObject *find_referent(PyObject *reference)
{
    PyObject *object = reference && reference != Py_None ? PyWeakref_GetObject(reference) : NULL;
    return object != Py_None ? object : NULL;
}

/* The gradient and its state; None: the parameter has none, or is gone. */
static PyObject *get_gradient(const struct native_clearing *clearing, struct state *ret)
{
    PyObject *parameter = Py_XNewRef(find_referent(clearing->parameter));
    bool has_none = !parameter || native_has_no_gradient(parameter);
    PyObject *gradient =
        has_none ? Py_NewRef(Py_None) : PyObject_GetAttr(parameter, native_names.grad);
    Py_XDECREF(parameter);
    if (gradient && read_state(gradient, ret) < 0) {
        Py_CLEAR(gradient);
    }
    return gradient;
}

static bool is_as_seen(const struct native_clearing *clearing, const struct state *state)
{
    return state->identity == clearing->seen && state->version == clearing->version;
}

static void remember_state(struct native_clearing *clearing, const struct state *state)
{
    clearing->seen = state->identity;
    clearing->version = state->version;
}

/* This step is already settled. */
static bool is_over(const struct native_clearing *clearing)
{
    return clearing->cleared || clearing->since != 0;
}

/* That of another optimizer; NULL: this was the last. */
static struct native_clearing *find_next(const struct native_clearing *clearing)
{
    return clearing->next != Py_None ? (struct native_clearing *)clearing->next : NULL;
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Nobody seems to have touched the gradient since the last step. Only Python can find out whether
 * it is 0 all the same. */
static int guess_cleared(struct native_clearing *clearing, PyObject *gradient)
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

static int begin_pass(struct native_clearing *clearing)
{
    struct state state;
    PyObject *gradient = get_gradient(clearing, &state);
    int status = gradient ? 0 : -1;
    clearing->gone = gradient == Py_None ? clearing->gone + 1 : 0;
    if (gradient && (gradient == Py_None || !is_as_seen(clearing, &state))) {
        clearing->cleared = true;
    } else if (gradient) {
        status = guess_cleared(clearing, gradient);
    }
    Py_XDECREF(gradient);
    return status;
}

/* The program drops the gradient in every step, so there is no need to look now. If it keeps one
 * some day, that is found one step late. */
static bool is_always_dropped(const struct native_clearing *clearing)
{
    return clearing->gone >= ALWAYS_STEPS && clearing->gone % ALWAYS_STEPS != 0;
}

static int end_pass(struct native_clearing *clearing)
{
    struct state state;
    if (is_over(clearing) && is_always_dropped(clearing)) {
        return 0;
    }
    PyObject *gradient = get_gradient(clearing, &state);
    if (!gradient) {
        return -1;
    }
    clearing->left = state.identity;
    clearing->left_version = state.version;
    if (!is_over(clearing)) {
        clearing->added |= gradient != Py_None && !is_as_seen(clearing, &state);
        remember_state(clearing, &state);
    }
    Py_DECREF(gradient);
    return 0;
}

static int begin_unless_over(struct native_clearing *clearing)
{
    return is_over(clearing) ? 0 : begin_pass(clearing);
}

/* No mode of the program and no parameter class of its own may see the look. */
static int look_apart(const struct native_context *context, struct native_clearing *clearing,
                      int (*look)(struct native_clearing *))
{
    PyObject *parameter = find_referent(clearing->parameter);
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
         clearing = find_next(clearing)) {
        status = look_apart(context, clearing, look);
    }
    return status;
}

int native_clearing_begins(struct native_context *context)
{
    return for_each(context, begin_unless_over);
}

int native_clearing_ends(struct native_context *context)
{
    return for_each(context, end_pass);
}

/* ---- an optimizer has stepped ---------------------------------------------------------------- */

/* 1: the gradient was zeroed and is watched again; 0: there is none now; -1. */
static int watch_again(struct native_clearing *clearing)
{
    struct state state = {0, 0};
    int status = 1;
    if (!is_always_dropped(clearing)) {
        PyObject *gradient = get_gradient(clearing, &state);
        status = gradient ? gradient != Py_None : -1;
        Py_XDECREF(gradient);
    }
    if (status > 0) {
        clearing->asks = clearing->asks && !clearing->looked;
        clearing->added = clearing->looked = clearing->cleared = false;
        remember_state(clearing, &state);
    }
    return status;
}

int native_clearing_stepped(struct native_context *context, PyObject *optimizer)
{
    struct native_clearing *clearing = context->clearing;
    while (clearing && find_referent(clearing->optimizer) != optimizer) {
        clearing = find_next(clearing);
    }
    int status = 0;
    if (clearing) {
        status = clearing->since != 0 ? 1
                 : clearing->cleared  ? look_apart(context, clearing, watch_again)
                                      : 0;
    }
    if (status != 0) {
        return status < 0 ? -1 : 0;
    }
    return native_call(native_get(context->agent, AGENT_CLEARING), native_names.stepped, optimizer,
                       NULL, NULL);
}

/* ---- the type -------------------------------------------------------------------------------- */

NATIVE_COLLECTED(offsetof(struct native_clearing, next),
                 offsetof(struct native_clearing, optimizer),
                 offsetof(struct native_clearing, parameter))

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

static char doc[] = "The base of clearing.Clearing.";

static PyType_Slot slots[] = {
    {Py_tp_doc, doc},
    {Py_tp_members, members},
    {Py_tp_traverse, visit_references},
    {Py_tp_clear, drop_references},
    {Py_tp_dealloc, free_object},
    {0, NULL},
};

PyType_Spec native_clearing_spec = {
    .name = "gradb._native.Clearing",
    .basicsize = sizeof(struct native_clearing),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
