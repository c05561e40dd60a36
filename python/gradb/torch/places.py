# SPDX-License-Identifier: MIT
"""The structs that describe a node's outputs to libgradb."""
import ctypes

from .. import _lib, native
from . import values
from .values import storage_of

NOT_TOLD = _lib.Tensor(_lib.FLOAT32, 0, None, None, None)
NO_TENSOR = _lib.Tensor(0, 0, None, None, None)  # a slot without a tensor: there is nothing to see


def struct_of(tensor):
    """For gradb_did_with. A tensor without an address is asked for when it is wanted; the answer gives the reason."""
    if tensor is None:
        return NO_TENSOR
    try:
        if type(tensor) in values.PLAIN:
            return values.describe(tensor)
    except (values.NoValue, RuntimeError):
        pass
    return NOT_TOLD


class Places(native.base("Places")):
    """The structs of a node's outputs for gradb_did_with, reused each time: an output with the shape, strides and type
    of the last time only gets a new address.

    array: for gradb_did_with; address: of the array; count: its length."""
    __slots__ = native.slots("Places", ("array", "address", "count", "_structs", "_forms", "_held"))

    def __init__(self, count):
        self.array = (_lib.Tensor * count)()
        self.address = ctypes.addressof(self.array)
        self.count = count
        self._structs = [self.array[slot] for slot in range(count)]  # they are part of the array
        self._held = [None] * count  # keeps the shapes and strides alive
        # (shape, strides, dtype, reach, bytes of an element, type, dense) from geometry(); None: unknown
        self._forms = [None] * count

    def fill(self, tensors):
        """Fills in the addresses of this run's outputs: a tensor or None per slot."""
        for slot, tensor in enumerate(tensors):
            form = self._forms[slot]
            if form is None:
                self._look(slot, tensor)
                continue
            shape, strides, dtype, reach, size, kind, _ = form
            if (type(tensor) is not kind or tensor.shape != shape or tensor.stride() != strides
                    or tensor.dtype is not dtype or not tensor.is_cpu or tensor.is_neg()
                    or tensor.storage_offset() * size + reach > storage_of(tensor).nbytes()):
                self._look(slot, tensor)  # which says why
            else:
                self._structs[slot].data = tensor.data_ptr()

    def fill_none(self, tensors):
        """Leaves the values to be asked for."""
        for slot, tensor in enumerate(tensors):
            self._put(slot, NO_TENSOR if tensor is None else NOT_TOLD)

    def _look(self, slot, tensor):
        struct = struct_of(tensor)
        self._put(slot, struct)
        if struct.data and not tensor.is_complex():  # complex ones may be lazily conjugated
            *_, reach, dense = values.geometry(tensor)
            self._forms[slot] = (tensor.shape, tensor.stride(), tensor.dtype, reach, tensor.element_size(),
                                 type(tensor), dense)

    def _put(self, slot, struct):
        self._forms[slot] = None
        self._held[slot] = struct
        ctypes.pointer(self._structs[slot])[0] = struct
