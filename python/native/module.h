// SPDX-License-Identifier: MIT
/* What module.c puts into the Python module, except what the other headers declare. Each file says
 * what its part is for, module.c how its functions are called. */
#ifndef GRADB_PYTHON_MODULE_H
#define GRADB_PYTHON_MODULE_H

#include "native.h"

extern PyType_Spec native_batch_spec;     /* batch.c */
extern PyType_Spec native_context_spec;   /* context_type.c */
extern PyType_Spec native_engine_spec;    /* engine.c */
extern PyType_Spec native_operators_spec; /* operators.c */
extern PyType_Spec native_pass_spec;      /* pass.c */
extern PyTypeObject *native_pass_type;
extern PyType_Spec native_source_spec; /* source.c */

PyObject *native_excepthook(PyObject *module, PyObject *callable); /* excepthook.c */
PyObject *native_hook_all(PyObject *module, PyObject *args);       /* pass_hooks.c */
PyObject *native_hook_known(PyObject *module, PyObject *args);     /* pass.c */
PyObject *native_registrar(PyObject *module, PyObject *args);      /* pass_hooks.c */
PyObject *native_updated(PyObject *module, PyObject *args);        /* updates.c */

#endif
