// SPDX-License-Identifier: MIT
/*
 * What a tensor is and where its memory is, asked of libtorch through the C functions whose ABI
 * is stable (aoti_torch_*). Where libtorch lacks them, native_can_read says no and the callers ask
 * Python instead; the answers are the same. libtorch.py finds the functions and checks them first.
 */
#ifndef GRADB_PYTHON_TENSORS_H
#define GRADB_PYTHON_TENSORS_H

#include "agent/gradb.h"
#include "native.h"

/* Whether native_read can read tensors of that type. */
bool native_can_read(gradb_dtype dtype);

/* 1, 0, or -1: the tensor has the type, shape and strides of `known`, its memory is on the host,
 * and all of its elements are inside that memory; *ret gets its address. The tensor must not be
 * lazily negated. reach: bytes from its first element to the end of its last; size: bytes of an
 * element. */
int native_read(PyObject *tensor, const gradb_tensor *known, long long reach, long long size,
                const void **ret);

/* The same for an address of a TensorImpl whose tensor is plain, see autograd.h. */
bool native_read_at(void *tensor, const gradb_tensor *known, long long reach, long long size,
                    const void **ret);

/* The address of a tensor's TensorImpl; NULL where its type is not PyTorch's own. */
void *native_tensor_of(PyObject *tensor);

/* 1, 0, or -1: *ret gets the value of a tensor without axes, of float32 or float64, on the host,
 * that shares its memory with no other. (So it is not lazily negated, as a part of a complex one
 * may be.) */
int native_read_number(PyObject *tensor, double *ret);

/* Whether `bytes` of memory contain all elements of a tensor that begins at element `offset`; reach
 * and size as in native_read. */
bool native_is_inside(long long offset, long long bytes, long long reach, long long size);

/* 1, 0, or -1: torch.is_grad_enabled(). is_enabled: that function, called where libtorch cannot be
 * asked. */
int native_has_gradients(PyObject *is_enabled);

/* The parameter certainly has no gradient; false: it has one, or this is unknown. */
bool native_has_no_gradient(PyObject *parameter);

/* How often the tensor was written in place; 0 for tensors that do not count (inference mode). */
PyObject *native_version(PyObject *tensor);

/* 1, 0, or -1: the answer of a method without arguments. */
int native_ask(PyObject *tensor, PyObject *method);

/* Functions of the Python module, see its table in module.c and libtorch.py. */
PyObject *native_read_by(PyObject *module, PyObject *args);
PyObject *native_reads(PyObject *module, PyObject *args);
PyObject *native_look_into(PyObject *module, PyObject *args);
PyObject *native_looks(PyObject *module, PyObject *tensor);

#endif
