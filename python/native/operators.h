// SPDX-License-Identifier: MIT
/* The base of ops.OperatorMode: calls an operator, and reports that its node has run. */
#ifndef GRADB_PYTHON_OPERATORS_H
#define GRADB_PYTHON_OPERATORS_H

#include "native.h"

extern PyType_Spec native_operators_spec;

#endif
