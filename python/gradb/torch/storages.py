# SPDX-License-Identifier: MIT
"""The storages of tensors: what memory a tensor has, and what a graph of grad_fns keeps for the backward pass. Nothing
of the program runs for it: hooks of saved tensors are not called."""
import gc

import torch

from . import values

_HAS_DATA = hasattr(getattr(torch._C._autograd, "SavedTensor", None), "data")
_RAW, _SAVED = "_raw_saved_", "_saved_"
_names = {}  # class of a grad_fn -> names of the attributes with saved tensors
_hooked = {"used": False}  # up to 2.10 or so nobody can say whether a saved tensor has hooks: they were used at all


def install():
    """Learns whether hooks of saved tensors are used, where PyTorch does not say it. Costs nothing otherwise."""
    push = getattr(torch._C._autograd, "_push_saved_tensors_default_hooks", None)
    if _HAS_DATA or push is None or getattr(push, "__gradb__", False):
        return

    def note(*args):
        _hooked["used"] = True
        return push(*args)
    note.__gradb__ = True
    torch._C._autograd._push_saved_tensors_default_hooks = note


def graphs_are_hidden():
    """Whether what graphs keep cannot be read without running hooks of the program."""
    return not _HAS_DATA and _hooked["used"]


def of(tensor):
    """[(key, bytes, device)] of the storages of a tensor; empty for one without memory of its own."""
    return [found[:3] for found in held_by(tensor)]


def held_by(tensor):
    """The same, with the storage as a fourth."""
    try:
        if tensor.layout is torch.strided:
            held = (tensor,)
        elif tensor.layout is torch.sparse_coo:
            held = tensor._indices(), tensor._values()
        else:
            held = [getattr(tensor, name)() for name in ("crow_indices", "col_indices", "ccol_indices", "row_indices",
                                                         "values") if _has(tensor, name)]
        found = []
        for part in held:
            storage = values.storage_of(part)
            address, size = storage.data_ptr(), storage.nbytes()
            if address and size:
                found.append(((str(part.device), address), size, part.device.type, storage))
        return found
    except (RuntimeError, NotImplementedError, AttributeError, TypeError, ValueError):
        return []


def _has(tensor, name):
    return (name in ("crow_indices", "col_indices")) == (tensor.layout in (torch.sparse_csr, getattr(
        torch, "sparse_bsr", None))) or name == "values"


def all_tensors():
    """All tensors that Python knows."""
    return [thing for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor)]


def saved(grad_fn):
    """The tensors that a grad_fn keeps."""
    kind = type(grad_fn)
    names = _names.get(kind)
    if names is None:
        start = _RAW if _HAS_DATA else _SAVED
        names = [name for name in dir(grad_fn) if name.startswith(start)]
        if not _HAS_DATA:
            names = [name for name in names if hasattr(grad_fn, _RAW + name[len(_SAVED):])]
            names += ["saved_tensors"] if isinstance(grad_fn, torch.autograd.function.BackwardCFunction) else []
        if len(_names) < 4096:
            _names[kind] = names
    found = []
    for name in names:
        try:
            _tensors_of(getattr(grad_fn, name), found)
        except (RuntimeError, AttributeError, TypeError, ValueError):
            pass  # they were released, or overwritten
    return found


def _tensors_of(value, found):
    if isinstance(value, (tuple, list)):
        for item in value:
            _tensors_of(item, found)
        return
    if _HAS_DATA and not isinstance(value, torch.Tensor):
        value = getattr(value, "data", None)
        if isinstance(value, (tuple, list)):  # packed by a hook of the program
            found.extend(item for item in value if isinstance(item, torch.Tensor))
    if isinstance(value, torch.Tensor):
        found.append(value)


def shape_of(tensor):
    """"float32 (64, 32)"."""
    try:
        shape = ", ".join(map(str, tensor.shape))
    except RuntimeError:  # its parts have different ones
        shape = "nested"
    return "%s (%s)" % (str(tensor.dtype).rpartition(".")[2], shape)
