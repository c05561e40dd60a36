// SPDX-License-Identifier: MIT
/* The base of backward._Engine, which stands in for PyTorch's engine: the passes of idle steps run
 * without Python, all others by `run`. */
#ifndef GRADB_PYTHON_ENGINE_H
#define GRADB_PYTHON_ENGINE_H

#include "native.h"

extern PyType_Spec native_engine_spec;

#endif
