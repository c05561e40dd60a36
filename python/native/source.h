// SPDX-License-Identifier: MIT
/* Where lasting values are: parameters and their gradients, which are asked for at the end of
 * each step while they are watched. All other questions go to source.Source in Python. */
#ifndef GRADB_PYTHON_SOURCE_H
#define GRADB_PYTHON_SOURCE_H

#include "native.h"

extern PyType_Spec native_source_spec;

#endif
