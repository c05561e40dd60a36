// SPDX-License-Identifier: MIT
#include "context.h"

#include "clock.h"
#include "names.h"
#include "objects.h"
#include "records.h"

PyTypeObject *native_context_type;
const struct native_context *native_handed;

bool native_is_ours(const struct native_context *context)
{
    return PyThread_get_thread_ident() == context->thread;
}

PyObject *native_enter_apart(const struct native_context *context)
{
    PyObject *apart = PyObject_CallNoArgs(context->apart);
    if (apart && native_call(apart, native_names.enter, NULL, NULL, NULL) < 0) {
        Py_CLEAR(apart);
    }
    return apart;
}

PyObject *native_enter_apart_for(const struct native_context *context, PyObject *tensor)
{
    PyObject *type = (PyObject *)Py_TYPE(tensor);
    bool plain = type == context->tensor || type == context->parameter || tensor == Py_None;
    PyObject *modes = plain ? PyObject_CallNoArgs(context->modes) : Py_NewRef(Py_True);
    if (!modes) {
        return NULL;
    }
    bool seen = modes != Py_False;
    Py_DECREF(modes);
    return seen ? native_enter_apart(context) : Py_NewRef(Py_None);
}

int native_leave_apart(PyObject *apart)
{
    if (apart == Py_None) {
        Py_DECREF(apart);
        return PyErr_Occurred() ? -1 : 0;
    }
    struct native_error error = native_take_error();
    int status = native_call(apart, native_names.exit, Py_None, Py_None, Py_None);
    Py_DECREF(apart);
    if (error.type) {
        native_restore_error(error);
        return -1;
    }
    return status;
}

PyObject *native_refer(const struct native_context *context, PyObject *tensor)
{
    return PyObject_CallFunctionObjArgs(context->ref, tensor, NULL);
}

int native_is_watched_closely(const struct native_context *context)
{
    PyObject *agent = context->agent;
    if (native_get(agent, AGENT_OVERFLOW) != Py_None ||
        native_get(agent, AGENT_OBSERVER) != Py_None ||
        native_get(agent, AGENT_DETAIL) != Py_None ||
        native_get(agent, AGENT_ALLOCATIONS) != Py_None) {
        return 1;
    }
    return context->clock->on && context->clock->waits;
}

int native_report_fault(struct native_context *context)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) {
        return -1; /* Ctrl-C belongs to the program, wherever it arrives */
    }
    struct native_error error = native_take_error();
    native_normalize_error(&error);
    if (!error.value ||
        native_call(context->agent, native_names.fault, error.value, NULL, NULL) < 0) {
        PyErr_Clear(); /* no fault of ours may reach the training */
    }
    native_drop_error(error);
    return 0;
}
