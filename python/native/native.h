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
 * Built for the stable ABI of CPython 3.10 and later: one binary serves all of them. Three parts go
 * below that ABI and PyTorch's: libtorch.py, nodes.py and functions.py find the places that they
 * need at attach, try them, and leave them alone where anything is not as expected.
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
 * - names, objects, map: interned strings; helpers for Python objects and exceptions; a map
 * - records, clock: the agent's attributes; the clock of a step
 * - tensors, autograd: what libtorch says about tensors; what is read from its memory
 * - context: everything that the agent consists of, and libgradb's functions
 * - graph, marks, seen, places, site: which node it is, which one has made a grad_fn or a tensor,
 *   where its outputs are, where the program calls it
 * - same, clearing, numbers: repeated values; zeroed gradients; loss and learning rates
 * - report, idle: a node has run; a step that nobody watches
 * - inputs: what a node reads
 * - operators, functions, updates, pass_node, pass_hooks, known_pass, pass, engine, hand_over,
 *   source: what PyTorch, gradb.torch and libgradb call
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
#define NATIVE_INTERFACE 20

#endif
