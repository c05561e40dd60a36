# SPDX-License-Identifier: MIT
"""Lets gradb._native see calls of PyTorch's C functions before PyTorch does: which fields of CPython's objects it may
replace for that is found and tried here. Where anything is not as expected, all calls go through the mode of ops.py,
with the same result.

Functions that PyTorch has in Python (torch.nn.functional.layer_norm) ask for overrides themselves; what they call then
is replaced, too."""
import ctypes
import types

import torch
from torch import overrides

from .. import native

_VARARGS, _KEYWORDS = 1, 2  # METH_VARARGS, METH_KEYWORDS of CPython
_WORD = ctypes.sizeof(ctypes.c_void_p)
_TENSOR = getattr(torch._C, "TensorBase", None)  # before 2.1 it has another name, and all calls go through the mode
_METHOD = type(getattr(_TENSOR, "add", None))
_DEFINITION = 5 * _WORD  # in a method_descriptor: the address of its PyMethodDef
_CALL = 6 * _WORD        # the last field, vectorcall, of both types
_TLS = "_ZN2at4impl22PythonTorchFunctionTLS"  # at::impl::PythonTorchFunctionTLS::
_STATE = ("9stack_lenEv", "18get_disabled_stateEv", "14peek_skip_nextEv")
# Methods whose operators in Python's syntax are methods of their own in C.
_SYNTAX = {"add": ("__add__", "__radd__"), "add_": ("__iadd__",), "sub": ("__sub__",), "sub_": ("__isub__",),
           "mul": ("__mul__", "__rmul__"), "mul_": ("__imul__",), "div": ("__truediv__",), "div_": ("__itruediv__",),
           "matmul": ("__matmul__",), "eq": ("__eq__",), "ne": ("__ne__",), "lt": ("__lt__",), "le": ("__le__",),
           "gt": ("__gt__",), "ge": ("__ge__",)}
_HANDLE = "handle_torch_function"
_MODULES = (torch.nn.functional, torch.functional, torch._tensor)  # whose functions in Python call that
_on = False     # the functions can be hooked
_hooked = None  # the mode for which they are


class _Definition(ctypes.Structure):
    """CPython's PyMethodDef."""
    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int))


def begin():
    """Begins it for the whole process. There is no end."""
    global _on
    if not native.looks or _TENSOR is None or _on:
        return
    library = ctypes.CDLL(torch._C.__file__)  # with its dependencies
    addresses = tuple(native.address(library, _TLS + name) for name in _STATE)
    if not all(addresses) or not _is_laid_out():
        return
    native.module.hook_by(addresses, torch._C._pop_torch_function_stack, torch._C._push_on_torch_function_stack,
                          types.BuiltinFunctionType, _METHOD, _methods(), overrides.handle_torch_function)
    _on = True


def hook(mode):
    """From now on, the C functions that the mode was called with are hooked, where it is on. None: no more."""
    global _hooked
    if not _on or mode is _hooked:
        return
    _hooked = mode
    native.module.hook_functions(mode)
    before, now = overrides.handle_torch_function, native.module.handle_torch_function
    if mode is None:
        before, now = now, before
    for module in _MODULES:
        if vars(module).get(_HANDLE) is before:
            setattr(module, _HANDLE, now)


def _is_laid_out():
    """Whether `vectorcall` is where we replace it: NULL in functions that take a tuple and a dict, and the same in all
    such methods."""
    if any(kind.__basicsize__ != _CALL + _WORD or kind.__weakrefoffset__ not in (0, _CALL - _WORD)
           for kind in (types.BuiltinFunctionType, _METHOD)):
        return False
    kinds = [_flags(method) for method in (_TENSOR.add, _TENSOR.view)]
    calls = {_word(id(method) + _CALL) for method in (_TENSOR.add, _TENSOR.view)}
    return (_word(id(torch.conv2d) + _CALL) == _word(id(torch.add) + _CALL) == 0 != _word(id(len) + _CALL)
            and kinds == [_VARARGS | _KEYWORDS] * 2 and len(calls) == 1 and 0 not in calls)


def _word(address):
    return ctypes.c_size_t.from_address(address).value


def _flags(method):
    """The METH_... of a method_descriptor."""
    definition = _Definition.from_address(_word(id(method) + _DEFINITION))
    return definition.flags if definition.name == method.__name__.encode() else None


def _methods():
    """method -> the methods of C that the mode sees as calls of it, of those that can be hooked."""
    held = vars(_TENSOR)
    fit = {name: method for name, method in held.items()
           if type(method) is _METHOD and _flags(method) in (_VARARGS, _VARARGS | _KEYWORDS)
           and getattr(torch.Tensor, name, None) is method}
    return {method: (method, *(fit[other] for other in _SYNTAX.get(name, ()) if other in fit))
            for name, method in fit.items() if not name.startswith("__")}
