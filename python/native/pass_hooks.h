// SPDX-License-Identifier: MIT
/* Puts hooks on the nodes of a backward pass before it runs. */
#ifndef GRADB_PYTHON_PASS_HOOKS_H
#define GRADB_PYTHON_PASS_HOOKS_H

#include "native.h"

/* hook_all(context, roots, nodes, handles, names): see backward.Backward. */
PyObject *native_hook_all(PyObject *module, PyObject *args);

/* registrar(others, type of dict): what replaces torch.autograd.Function._register_hook. */
PyObject *native_registrar(PyObject *module, PyObject *args);

#endif
