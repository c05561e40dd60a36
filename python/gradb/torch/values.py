# SPDX-License-Identifier: MIT
"""Tensors as libgradb sees them, and where a node's value lies when the debugger asks.

Nothing is kept alive for the debugger's sake: outputs are found by weak references, and a value that is
gone or was overwritten is said to be so.
"""
import ctypes
import weakref

import torch

from .. import _lib

DTYPES = {torch.bool: (_lib.BOOL, 1), torch.int8: (_lib.INT8, 1), torch.int16: (_lib.INT16, 2),
          torch.int32: (_lib.INT32, 4), torch.int64: (_lib.INT64, 8), torch.uint8: (_lib.UINT8, 1),
          torch.float16: (_lib.FLOAT16, 2), torch.float32: (_lib.FLOAT32, 4), torch.float64: (_lib.FLOAT64, 8),
          torch.bfloat16: (_lib.BFLOAT16, 2), torch.complex64: (_lib.COMPLEX64, 8),
          torch.complex128: (_lib.COMPLEX128, 16)}
for _name, _code in (("uint16", _lib.UINT16), ("uint32", _lib.UINT32), ("uint64", _lib.UINT64)):
    if hasattr(torch, _name):
        DTYPES[getattr(torch, _name)] = (_code, int(_name[4:]) // 8)

_MAX_GEOMETRIES = 16384
_geometries = {}  # (shape, strides, dtype) -> (shape array, strides array, dtype number, rank)


class NoValue(Exception):
    """Why a tensor cannot be looked at; .answer is one of gradb_answer."""

    def __init__(self, reason, answer=_lib.NO_VALUE):
        super().__init__(reason)
        self.answer = answer


def check(tensor):
    """Raises NoValue for a tensor without plain memory."""
    if tensor.layout != torch.strided:
        raise NoValue("the tensor is %s: only strided ones can be read" % str(tensor.layout)[6:], _lib.UNSUPPORTED)
    if tensor.is_quantized:
        raise NoValue("the tensor is quantised: dequantize() it to look", _lib.UNSUPPORTED)
    if tensor.device.type == "meta":
        raise NoValue("the tensor lies on the meta device: it has no values", _lib.UNSUPPORTED)
    if tensor.dtype not in DTYPES:
        raise NoValue("values of %s cannot be read" % tensor.dtype, _lib.UNSUPPORTED)


def geometry(tensor):
    """(shape array, strides array in bytes, dtype number, rank), shared by all tensors alike. NoValue."""
    key = (tensor.shape, tensor.stride() if tensor.layout == torch.strided else None, tensor.dtype)
    found = _geometries.get(key)
    if found is None:
        check(tensor)
        shape, strides, dtype = key
        number, size = DTYPES[dtype]
        rank = len(shape)
        if rank > _lib.MAX_RANK:
            raise NoValue("the tensor has %d axes, at most %d can be shown" % (rank, _lib.MAX_RANK),
                          _lib.UNSUPPORTED)
        array = ctypes.c_int64 * rank
        found = (array(*shape), array(*[stride * size for stride in strides]), number, rank)
        if len(_geometries) >= _MAX_GEOMETRIES:
            _geometries.clear()
        _geometries[key] = found
    return found


def describe(tensor, data=True):
    """The struct gradb_tensor of a tensor; without its address when it is not in host memory, or when
    data is False. NoValue."""
    shape, strides, number, rank = geometry(tensor)
    address = None
    if data and tensor.device.type == "cpu":
        if tensor.is_conj() or tensor.is_neg():
            raise NoValue("the tensor is a lazy conjugate or negative: resolve it to look", _lib.UNSUPPORTED)
        address = tensor.data_ptr() or None
    return _lib.Tensor(number, rank, shape, strides, address)


def shape_of(tensor):
    """Its struct without address; None when it cannot be read."""
    try:
        return describe(tensor, data=False)
    except NoValue:
        return None


def told(tensor):
    """For gradb_did_with: a tensor without address is asked for when it is wanted, so that its reason is told."""
    try:
        if tensor is not None:
            return describe(tensor)
    except NoValue:
        pass
    return _lib.Tensor(_lib.FLOAT32, 0, None, None, None)


class Live:
    """Weak references to the outputs of the step's nodes, and the holders of what lasts."""

    def __init__(self):
        self._outputs = {}  # node number -> (step, (reference and version per slot))
        self._lasting = {}  # node number -> function that gives the tensor, or None when there is none

    def ran(self, number, step, tensors):
        """Its outputs of this step: a tensor or None per slot."""
        self._outputs[number] = (step, tuple(
            None if tensor is None else (weakref.ref(tensor), tensor._version if not tensor.is_inference() else 0)
            for tensor in tensors))

    def lasts(self, number, get):
        """The node's one value is what `get()` returns whenever it is asked for."""
        self._lasting[number] = get

    def find(self, number, slot):
        """(tensor, step) of a node's output; step -1 when it is as old as whoever holds it. NoValue."""
        get = self._lasting.get(number)
        if get is not None:
            tensor = get() if slot == 0 else None
            if tensor is None:
                raise NoValue("it has no value now")
            return tensor, -1
        found = self._outputs.get(number)
        if found is None:
            raise NoValue("it has not run while the debugger was looking")
        step, references = found
        if slot >= len(references) or references[slot] is None:
            raise NoValue("output %d of it is no tensor" % slot)
        reference, version = references[slot]
        tensor = reference()
        if tensor is None:
            raise NoValue("the program has dropped it: stop right behind the operator to look at it")
        if not tensor.is_inference() and tensor._version != version:
            raise NoValue("it was overwritten in place since: stop right behind the operator to look at it")
        return tensor, step
