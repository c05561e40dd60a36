# SPDX-License-Identifier: MIT
"""Keeps the watchers from computing with tensors that only the program can read:

- Opaque ones, such as a DTensor: __torch_dispatch__ gives them their meaning, which may be a collective that would wait
  for the other ranks. Without it PyTorch reads at address 0, as many of them have no memory of their own.
- Those whose memory was released: sharded training keeps gathered parameters only while they are used."""
import contextlib
import itertools
from collections import UserDict

import torch
from torch.overrides import TorchFunctionMode

from ..guard import of_program
from ..values import PLAIN, is_opaque

# What may be asked of every tensor. What returns another tensor with the same values (data, T) is not among it.
_ASKED = frozenset((
    "_backward_hooks", "_base", "_cdata", "_grad", "_post_accumulate_grad_hooks", "_version", "device", "dtype", "grad",
    "grad_fn", "is_cpu", "is_cuda", "is_leaf", "is_meta", "is_mps", "is_nested", "is_quantized", "is_sparse", "is_xpu",
    "itemsize", "layout", "names", "nbytes", "ndim", "output_nr", "requires_grad", "retains_grad", "shape",
    "__hash__", "__len__", "dim", "element_size", "get_device", "is_complex", "is_contiguous", "is_floating_point",
    "is_inference", "is_shared", "is_signed", "ndimension", "nelement", "numel", "size", "storage_offset", "stride",
    "data_ptr", "untyped_storage", "_typed_storage", "_storage"))
_MAX_DEPTH = 4  # of containers
_MOST_ITEMS = 4096  # of a container: a batch may be a long list of numbers
_SHARDS = "FullyShardedDataParallel"  # releases the memory of what looks like any other parameter


class Unreadable(Exception):
    """A watcher was about to compute with one of these tensors."""


def _is_released(thing):
    if type(thing) not in PLAIN or thing.layout is not torch.strided or thing.is_meta:
        return False
    try:
        return thing.data_ptr() == 0 and thing.numel() > 0
    except RuntimeError:  # its device has no addresses
        return False


def _is_unreadable(thing):
    return is_opaque(thing) or _is_released(thing)


def find(thing, is_wanted=is_opaque, depth=_MAX_DEPTH):
    """A tensor like that among what the thing consists of, or a module that shards others; None: neither. thing: a
    container, an optimizer (its parameters and their gradients), a module, or anything else."""
    if is_wanted(thing):
        return thing
    if isinstance(thing, torch.optim.Optimizer):
        held = [one for group in thing.param_groups for one in group["params"]]
        held += [one.grad for one in held]
    elif isinstance(thing, torch.nn.Module):
        held = []
        for module in torch.nn.Module.modules(thing):  # not those of a class that overrides them
            if type(module).__name__ == _SHARDS:
                return module
            held += [*module._parameters.values(), *module._buffers.values()]
    elif isinstance(thing, (dict, UserDict)):
        held = itertools.islice(thing.values(), _MOST_ITEMS)
    else:
        held = itertools.islice(thing, _MOST_ITEMS) if isinstance(thing, (tuple, list)) else ()
    return next((inner for inner in (find(one, is_wanted, depth - 1) for one in held) if inner is not None), None) \
        if depth else None


class _Refusing(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunction():
            name = getattr(func, "__name__", "")
            if name in ("__get__", "__set__"):
                name = getattr(func.__self__, "__name__", "")
            found = None if name in _ASKED else find((*args, *(kwargs or {}).values()), _is_unreadable)
            if found is not None:
                raise Unreadable("%s of a %s" % (name, type(found).__name__ if is_opaque(found) else "released tensor"))
            return func(*args, **kwargs or {})


@contextlib.contextmanager
def refusing():
    """Inside, nothing is computed with them: Unreadable."""
    with of_program(), _Refusing():
        yield
