// SPDX-License-Identifier: MIT
/* The Python type of a context: how it is made, and the methods that Python calls. */
#ifndef GRADB_PYTHON_CONTEXT_TYPE_H
#define GRADB_PYTHON_CONTEXT_TYPE_H

#include "native.h"

extern PyType_Spec native_context_spec;

#endif
