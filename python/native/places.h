// SPDX-License-Identifier: MIT
/* Where the outputs of a node are in memory: the structs of places.Places, which libgradb reads. */
#ifndef GRADB_PYTHON_PLACES_H
#define GRADB_PYTHON_PLACES_H

#include "agent/gradb.h"
#include "autograd.h"
#include "context.h"

/* The items of a form, a tuple in places.Places: what an output was when it was last looked at. */
enum native_form {
    FORM_SHAPE,
    FORM_STRIDES,
    FORM_DTYPE,
    FORM_REACH, /* bytes from the first element to the end of the last */
    FORM_SIZE,  /* bytes of an element */
    FORM_KIND,
    FORM_DENSE /* its elements fill their memory, in any order of the axes */
};

/* The structs of a places.Places, which owns them; NULL with an exception. */
gradb_tensor *native_structs(PyObject *places);

/* 1, 0, or -1: the tensor still has that form and is what *ret says, except for its address, which
 * *ret gets. */
int native_locate(struct native_context *context, PyObject *tensor, PyObject *form,
                  gradb_tensor *ret);

/* Puts the addresses of this run's outputs into the structs. Python looks at the outputs that have
 * changed. */
int native_fill_places(struct native_context *context, PyObject *places, PyObject *tensors);

/* The same for outputs without Python objects. 0: one has changed, and Python must look at it; -1.
 */
int native_fill_unwrapped(struct native_context *context, PyObject *places,
                          const struct native_tensors *tensors);

#endif
