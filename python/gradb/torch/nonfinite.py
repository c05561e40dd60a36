# SPDX-License-Identifier: MIT
"""Finds the tensors that are not finite, with one pass over the elements of the finite ones; and tensors that share
memory."""
import cmath

import torch

from . import calls, devices, values

_MAX_BEFORE = 256 << 20       # bytes of one value that is copied before it is overwritten
_TOO_BIG = "the operator overwrote it, and it is too big to be copied before (%d MiB)"
_SUM_TYPES = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float32,
              torch.float64: torch.float64, torch.complex64: torch.complex64, torch.complex128: torch.complex128,
              **{dtype: torch.float32 for dtype in values._AS_FLOAT32}}
_GUARD_ENTERS = hasattr(torch._C._DisableTorchDispatch, "__enter__")


def suspects(tensors):
    """(slot, tensor) of the tensors that may not be finite."""
    with torch._C.DisableTorchFunction(), _NoDispatch():
        return [(slot, tensor) for slot, tensor in enumerate(tensors)
                if isinstance(tensor, torch.Tensor) and may_be_bad(tensor)]


class _NoDispatch:
    """No mode of the program sees what is computed inside."""
    __slots__ = ("_guard",)

    def __enter__(self):
        self._guard = torch._C._DisableTorchDispatch()
        if _GUARD_ENTERS:  # not in 1.13, where it holds as long as it exists
            self._guard.__enter__()

    def __exit__(self, *_):
        if _GUARD_ENTERS:
            self._guard.__exit__(None, None, None)
        self._guard = None


def may_be_bad(tensor):
    """Whether an element may be infinite or NaN. False is certain: a sum is finite only when all elements are. Also
    False for what cannot be read, or must not be while a CUDA graph is captured."""
    sum_type = _SUM_TYPES.get(tensor.dtype)
    if sum_type is None or (not tensor.is_cpu and devices.is_capturing()):
        return False
    try:
        if type(tensor) not in values.PLAIN:  # reading a sharded one would involve the other ranks
            tensor = values.readable(tensor)
        tensor = tensor.detach()
        if tensor.element_size() == 1:  # float8
            tensor = tensor.to(torch.float32)
        return not cmath.isfinite(tensor.sum(dtype=sum_type).item())
    except (values.NoValue, RuntimeError, NotImplementedError, TypeError):
        return False


def with_stats(found):
    """(slot, tensor, statistics) of the tensors that can be read."""
    for slot, tensor in found:
        try:
            yield slot, tensor, calls.stats_of(tensor)
        except (values.NoValue, RuntimeError):
            continue


def not_finite(suspects):
    """(slot, tensor, statistics) of the tensors that are not finite."""
    return [entry for entry in with_stats(suspects) if not calls.is_finite(entry[2])]


def memory_of(tensor):
    """Identifies the memory of a tensor; None when that is not possible."""
    try:
        return values.storage_of(tensor).data_ptr() or None
    except (RuntimeError, AttributeError, NotImplementedError):
        return None


def copied(tensor):
    """A copy of the tensor; a text, why not, when it cannot be copied."""
    size = tensor.numel() * tensor.element_size()
    if size > _MAX_BEFORE:
        return _TOO_BIG % (size >> 20)
    try:
        copy = tensor.detach().clone()
        if tensor.requires_grad:
            copy.requires_grad_()
        return copy
    except RuntimeError as error:
        return "the operator overwrote it, and it could not be copied before: %s" % str(error).split("\n", 1)[0]


def shows_an_input(tensor, given):
    """Whether it is a view of an input: its elements are not new."""
    base = tensor._base
    return base is not None and any(other is base or other._base is base for other, _ in given)


def is_inexact(tensor):
    """Whether its elements can be infinite or NaN."""
    return tensor.is_floating_point() or tensor.is_complex()
