// SPDX-License-Identifier: MIT
/*
 * Traces a thread only while one of its frames has a line that is wanted (gradb/lines.py). Python
 * 3.11 only: a trace function slows down everything that a thread runs, but a frame evaluation
 * function (PEP 523) costs a few nanoseconds per call. Later versions have sys.monitoring.
 *
 * There is one set of frames in a process, that of one thread, which makes all calls. Where others
 * run Python code for that thread, which waits (the backward pass of a device), they are traced.
 */
#ifndef GRADB_PYTHON_FRAMES_H
#define GRADB_PYTHON_FRAMES_H

#include "native.h"

/* frames_begin(decide, trace, chain, aside): watches the frames of this thread. False: it is not
 * possible, because this is another version or another module evaluates frames. If it watches
 * already, asks for each code object again.
 * - decide(code): FRAMES_PLAIN, FRAMES_WANTED or FRAMES_TRACER, once for each code object
 * - trace: for sys.settrace, while a frame is wanted
 * - chain(function): a trace function that calls this one, which the program has set, too
 * - aside(): whether the thread that calls it runs for the watched one */
PyObject *native_frames_begin(PyObject *module, PyObject *args);
/* frames_trace(bool): whether the running frames are to be traced from now on. */
PyObject *native_frames_trace(PyObject *module, PyObject *wanted);
/* frames_end(): watches no more. */
PyObject *native_frames_end(PyObject *module, PyObject *none);

#endif
