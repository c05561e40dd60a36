// SPDX-License-Identifier: MIT
/*
 * gradb._native: what the PyTorch agent does at every operator, in C. Every header here includes
 * this one.
 *
 * The C code takes only the paths that nearly all operators and backward nodes take, for nodes that
 * are already known. Everything unusual goes to the Python code in gradb.torch, which can do all of
 * it and does all of it where this module is missing. So there is no state here that Python does
 * not have: the classes of gradb.torch whose attributes are needed at every operator have a base
 * class here that holds them (records.h).
 *
 * Built for the stable ABI of CPython 3.10 and later: one binary serves all of them.
 *
 * Unless a header says otherwise:
 * - the caller holds the interpreter lock (GIL);
 * - a PyObject * result is a new reference, or NULL with an exception set;
 * - an int result is 0, or -1 with an exception set; a question is answered by 1, 0, or -1 with an
 *   exception set;
 * - arguments are borrowed.
 *
 * Layers, lowest first; none includes a later one:
 *
 * - names, objects: interned strings; helpers for Python objects and exceptions
 * - records, clock, tensors: the agent's attributes; the clock of a step; libtorch's tensors
 * - context: everything that the agent consists of, and libgradb's functions
 * - graph, places, inputs: which node it is, where its outputs are, what it reads
 * - same, clearing, numbers: repeated values; zeroed gradients; loss and learning rates
 * - report, idle: a node has run; a step that nobody watches
 * - operators, updates, pass_node, pass_hooks, engine, hand_over, source: what PyTorch, gradb.torch
 *   and libgradb call
 * - batch: what the wrappers of losses call
 * - frames: stops at lines of source
 * - context_type, module: the Python module; module.h declares its other parts
 */
#ifndef GRADB_PYTHON_NATIVE_H
#define GRADB_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030a0000
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>

/* The version of the interface between this module and gradb.torch: both must come from one tree.
 */
#define NATIVE_INTERFACE 18

#endif
