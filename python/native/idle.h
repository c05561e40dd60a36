// SPDX-License-Identifier: MIT
/*
 * Steps that nobody watches: the work of steps.Steps, backward.Backward and the code below them,
 * without Python. It runs once per step, with caches that the training has filled with other
 * things, so what costs is how much memory is touched: Python takes ten times as long.
 *
 * Python says that the next steps are idle (Context.idle), and takes that back when anything is
 * asked of it. Each function here does all of its work or nothing: nothing where the step is no
 * longer idle, or takes a turn that hardly any step takes. The functions return 1: done; 0: only
 * Python can do it; -1: an interrupt came.
 */
#ifndef GRADB_PYTHON_IDLE_H
#define GRADB_PYTHON_IDLE_H

#include "context.h"

/* Nobody watches, and nothing else was asked for. */
int native_is_idle(const struct native_context *context);

/* A forward pass begins with a call of that module. */
int native_begin_forward(struct native_context *context, PyObject *module);
/* The module that native_begin_forward began with has returned. An exception that is set stays. */
void native_leave_module(struct native_context *context);
/* Python is about to ask for the path of the running module: sets it. 0 or -1. */
int native_publish_path(struct native_context *context);

/* The outermost backward pass of the step begins, with run_backward's arguments; or has ended. */
int native_begin_pass(struct native_context *context, PyObject *tensors, PyObject *gradients,
                      PyObject *keywords);
int native_end_pass(struct native_context *context);

/* An optimizer is about to step, with the arguments of its hook; or has stepped. */
int native_begin_optimizer(struct native_context *context, PyObject *optimizer, PyObject *args,
                           PyObject *keywords);
int native_end_optimizer(struct native_context *context, PyObject *optimizer);

/* ---- methods of a context, see the table in context_type.c ------------------------------------
 */

PyObject *native_idle(PyObject *context, PyObject *args);
PyObject *native_is_nested(PyObject *context, PyObject *none);
PyObject *native_outermost(PyObject *context, PyObject *args);
PyObject *native_is_outermost(PyObject *context, PyObject *module);
PyObject *native_optimizer_begins(PyObject *context, PyObject *args);
PyObject *native_optimizer_ended(PyObject *context, PyObject *optimizer);

#endif
