# SPDX-License-Identifier: MIT
"""Finds the tensors that are not finite, with one pass over the elements of the finite ones.

The functions take tensors, and copies of them as numpy arrays."""
import mindspore
import numpy

_INEXACT = {mindspore.float16, mindspore.float32, mindspore.float64, mindspore.complex64, mindspore.complex128,
            getattr(mindspore, "bfloat16", mindspore.float32)}


def is_inexact(tensor):
    """Whether its elements can be infinite or NaN."""
    return tensor.dtype in _INEXACT if isinstance(tensor, mindspore.Tensor) else tensor.dtype.kind not in "biu"


def suspects(tensors):
    """(slot, tensor) of the tensors that may not be finite."""
    return [(slot, tensor) for slot, tensor in enumerate(tensors) if tensor is not None and may_be_bad(tensor)]


def may_be_bad(tensor):
    """Whether an element may be infinite or NaN. False is certain: a sum is finite only when all elements are. Also
    False for what cannot be read."""
    try:
        if not is_inexact(tensor) or getattr(tensor, "has_init", False):
            return False
        held = _read(tensor)
    except (RuntimeError, TypeError):
        return False
    with numpy.errstate(all="ignore"):
        total = held.sum(dtype=numpy.float32) if held.dtype == numpy.float16 else held.sum()
        return not numpy.isfinite(total)


def stats_of(tensor):
    """{"min", "max", "nan", "pos_inf", "neg_inf", "count"} of a tensor; min and max are None when no element is finite.
    """
    held = _read(tensor)
    finite = held[numpy.isfinite(held)]
    nan = int(numpy.isnan(held).sum())
    if held.dtype.kind == "c":
        return {"min": None, "max": None, "nan": nan, "pos_inf": held.size - finite.size - nan, "neg_inf": 0,
                "count": held.size}
    return {"min": finite.min().item() if finite.size else None, "max": finite.max().item() if finite.size else None,
            "nan": nan, "pos_inf": int((held == numpy.inf).sum()), "neg_inf": int((held == -numpy.inf).sum()),
            "count": held.size}


def with_stats(found):
    """(slot, tensor, statistics) of the tensors that can be read."""
    for slot, tensor in found:
        try:
            yield slot, tensor, stats_of(tensor)
        except (RuntimeError, TypeError):
            continue


def not_finite(suspected):
    """(slot, tensor, statistics) of the tensors that are not finite."""
    return [entry for entry in with_stats(suspected)
            if entry[2]["nan"] or entry[2]["pos_inf"] or entry[2]["neg_inf"]]


def _read(tensor):
    """The elements as an array; bfloat16, which numpy does not know, as float32."""
    held = tensor.asnumpy() if isinstance(tensor, mindspore.Tensor) else tensor
    return held.astype(numpy.float32) if held.dtype.name == "bfloat16" else held
