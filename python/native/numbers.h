// SPDX-License-Identifier: MIT
/*
 * The numbers of an idle step: loss, learning rates, batch; see events.py. Only plain numbers in
 * host memory are handled here, all others by Python. Loss and rates wait in the context until the
 * step is over or Python asks for them.
 */
#ifndef GRADB_PYTHON_NUMBERS_H
#define GRADB_PYTHON_NUMBERS_H

#include "context.h"

/* The loss of a backward pass with these arguments. 1: *ret has it, where it is to be reported; 0:
 * only Python can tell; -1. */
int native_find_loss(struct native_context *context, PyObject *tensors, PyObject *gradients,
                     struct native_number *ret);

/* A pass into the parameters begins; loss: what native_find_loss found. */
int native_note_pass(struct native_context *context, struct native_number loss);

/* The learning rates that the main optimizer's step uses. */
int native_note_rates(struct native_context *context, PyObject *optimizer);

/* The main optimizer has stepped. */
int native_note_stepped(struct native_context *context);

/* The step is over: its numbers go to the debugger where `told`, and are forgotten. */
int native_report_numbers(struct native_context *context, bool told);

/* Context.give_numbers(): moves what waits to where Python looks for it. */
PyObject *native_give_numbers(PyObject *context, PyObject *none);

#endif
