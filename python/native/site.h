// SPDX-License-Identifier: MIT
/* From where the program calls what runs now, and in which module: see site() and outer_scope() in
 * stack.py and reporter.py, and modules.py, which do the same for what is not known yet. */
#ifndef GRADB_PYTHON_SITE_H
#define GRADB_PYTHON_SITE_H

#include "context.h"

/* The site of the outermost module that runs, and from now on that of modules.Modules.local. NULL
 * without an exception: Python must determine it. */
PyObject *native_find_site(struct native_context *context);

/* The key in the table of families (graph.Graph) of an operator of that name outside all modules.
 * NULL without an exception: Python must determine it. */
PyObject *native_outer_key(struct native_context *context, PyObject *name);

/* Methods of a Context, see context_type.c. */
PyObject *native_use_sites(PyObject *context, PyObject *args);
PyObject *native_enter_module(PyObject *context, PyObject *module);

#endif
