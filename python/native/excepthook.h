// SPDX-License-Identifier: MIT
/* A stand-in for sys.excepthook that looks like the original to the program. */
#ifndef GRADB_PYTHON_EXCEPTHOOK_H
#define GRADB_PYTHON_EXCEPTHOOK_H

#include "native.h"

/* excepthook(function): a built-in function of sys that calls the last function given. */
PyObject *native_excepthook(PyObject *module, PyObject *callable);

#endif
