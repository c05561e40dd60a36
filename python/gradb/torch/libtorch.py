# SPDX-License-Identifier: MIT
"""Lets gradb._native read tensors through libtorch itself: through the C functions whose ABI is stable, where they
exist and give the answers that Python gives. What no function gives is read from memory, where it is at the same place
in all tensors: the address of the Tensor in Python's object, and the gradient."""
import ctypes

import torch

from .. import native
from . import values

_GRADIENTS = "grad_mode_is_enabled"
_FUNCTIONS = ("get_dim", "get_sizes", "get_strides", "get_dtype", "get_layout", "get_device_type",
              "get_storage_offset", "get_storage_size", "get_data_ptr", _GRADIENTS)  # in the order of read_by


def begin():
    """Begins it for the whole process. There is no end."""
    if native.module is None:
        return
    try:
        library = ctypes.CDLL(torch._C.__file__)  # with its dependencies
    except OSError:
        return
    if _is_read_by(library):
        with values.outside_training():
            _look_into(library)


def _is_read_by(library):
    """Gives the module the library's functions, if all exist. False if they do not answer what Python answers: then
    this library is unknown to us."""
    try:
        functions = tuple(_address(library, name) for name in _FUNCTIONS)
        strided, cpu = library.aoti_torch_layout_strided(), library.aoti_torch_device_type_cpu()
    except AttributeError:  # missing up to 2.7 at least
        return True
    native.module.read_by(functions, strided, cpu, _dtypes(library))
    if not _is_right(library):
        native.module.read_by((), 0, 0, {})
        return False
    return True


def _address(library, name):
    return ctypes.cast(getattr(library, "aoti_torch_" + name), ctypes.c_void_p).value


def _dtypes(library):
    """libgradb's number of a type -> libtorch's"""
    found = {}
    for dtype, (number, _) in values.DTYPES.items():
        function = getattr(library, "aoti_torch_dtype_" + str(dtype).rsplit(".", 1)[-1], None)
        if function is not None:
            found[number] = function()
    return found


def _is_right(library):
    """Whether libtorch answers what Python answers."""
    try:
        with values.outside_training():
            return all(map(_agrees, _examples())) and _knows_gradients(getattr(library, "aoti_torch_" + _GRADIENTS))
    except (RuntimeError, values.NoValue):
        return False


def _knows_gradients(function):
    """Whether the function knows when gradients are enabled."""
    function.restype = ctypes.c_bool
    with torch.enable_grad():
        found = function()
    with torch.no_grad():
        return found and not function()


def _examples():
    """Tensors that differ in everything that is asked."""
    yield torch.zeros((2, 3, 5), dtype=torch.float32, device="cpu")
    yield torch.zeros((4, 3, 2), dtype=torch.float64, device="cpu").transpose(0, 2)[1:, :, ::2]
    yield torch.zeros((), dtype=torch.int64, device="cpu")
    yield torch.zeros(7, dtype=torch.bool, device="cpu")[2:5]


def _agrees(tensor):
    """Whether the module finds this tensor's address, and none for a description that does not fit."""
    struct, size, reach = values.describe(tensor), tensor.element_size(), values.geometry(tensor)[4]

    def reads(other, reach):
        return native.module.reads(other, ctypes.addressof(struct), reach, size)
    return (reads(tensor, reach) == tensor.data_ptr()
            and reads(tensor, reach + tensor.untyped_storage().nbytes()) is None
            and reads(torch.zeros((3, 2, 5), dtype=tensor.dtype, device="cpu"), reach) is None
            and reads(tensor.to(torch.int8), reach) is None)


# ---- what no function gives ----

_GRADIENT = "_ZNK3c1010TensorImpl4gradEv"  # c10::TensorImpl::grad() const: the address of a Tensor


def _word(address):
    return ctypes.c_void_p.from_address(address).value


def _look_into(library):
    """Informs the module where a tensor's address and its gradient are, if that place is the same in all tensors."""
    plain, bare, other, full = _parameters()
    tensors = (plain, bare, other, full, full.grad)
    places = [place for place in range(object.__basicsize__, torch.Tensor.__base__.__basicsize__,
                                       ctypes.sizeof(ctypes.c_void_p))
              if all(_word(id(tensor) + place) == tensor._cdata for tensor in tensors)]
    if len(places) != 1:
        return
    address = native.address(library, _GRADIENT)
    none = _word(ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)(bare._cdata)) if address else 0
    kinds = torch.Tensor, torch.nn.Parameter
    native.module.look_into(*kinds, places[0], address, none)
    if [native.module.looks(tensor) for tensor in tensors] != [
            (tensor._cdata, bool(address) and tensor.grad is None) for tensor in tensors]:
        native.module.look_into(*kinds, 0, 0, 0)


def _parameters():
    """A plain tensor, two parameters without a gradient, and one with."""
    plain = torch.zeros(3, device="cpu")
    bare, other, full = (torch.nn.Parameter(torch.zeros(size, device="cpu")) for size in (2, 3, 5))
    full.grad = torch.zeros(5, device="cpu")
    return plain, bare, other, full
