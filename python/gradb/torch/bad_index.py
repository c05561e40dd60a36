# SPDX-License-Identifier: MIT
"""Finds the index that is out of range, for an operator that selects by index and has raised: cross_entropy, embedding,
gather, indexing and similar ones."""
import torch

from . import values

_INTEGERS = frozenset((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64))  # types of indices
_MASKS = frozenset((torch.bool, torch.uint8))  # types of masks: as an index they select where they are True
_CLASSES = frozenset(("cross_entropy", "nll_loss", "nll_loss_nd", "cross_entropy_loss"))
_ALONG = frozenset(("gather", "index_select", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy"))
_INDEXED = frozenset(("getitem", "setitem", "index_put"))
_OF_ALL = frozenset(("take", "put"))  # from all elements in order


class Picking:
    """Indices into something.

    count: how many items there are to select from, along `axis`; from_end: negative indices count from the end;
    left_out: an index that selects nothing, or None; listed: given as a list, not as a tensor."""
    __slots__ = ("numbers", "count", "axis", "from_end", "left_out", "listed")

    def __init__(self, numbers, count, axis=0, from_end=False, left_out=None):
        self.listed = not isinstance(numbers, torch.Tensor)
        self.numbers = torch.as_tensor(numbers, device="cpu") if self.listed else numbers
        self.count = count
        self.axis = axis
        self.from_end = from_end
        self.left_out = left_out

    def first_bad(self):
        """(place of the first index that is out of range, the index); None when all are in range."""
        if not _is_plain(self.numbers) or self.numbers.dtype not in _INTEGERS:
            return None
        with torch.no_grad():
            numbers = self.numbers.long()
            bad = (numbers < (-self.count if self.from_end else 0)) | (numbers >= self.count)
            if self.left_out is not None:
                bad &= numbers != self.left_out
            places = bad.nonzero()
            if len(places) == 0:
                return None
            place = [int(axis) for axis in places[0]]
            return place, int(numbers[tuple(place)])


def find(name, args, kwargs):
    """(Picking, place of the first index that is out of range, the index) of an operator that selects by index. None
    when all are in range, or for any other operator."""
    try:
        for picking in _pickings(name, args, kwargs):
            found = picking.first_bad()
            if found is not None:
                return (picking, *found)
    except (OverflowError, RuntimeError, TypeError, ValueError):
        pass  # the values cannot be read (torch.func), or it is not an index at all
    return None


def _pickings(name, args, kwargs):
    """A Picking for each index argument of the operator."""
    def given(position, key):
        return args[position] if len(args) > position else kwargs.get(key)

    plain = name.rstrip("_")
    source = given(0, "input")
    if name in _CLASSES:
        numbers = given(1, "target")
        if _is_plain(source) and source.dim() > 0 and isinstance(numbers, torch.Tensor):
            yield Picking(numbers, source.shape[1 if source.dim() > 1 else 0],
                          left_out=kwargs.get("ignore_index", -100))
    elif name == "embedding" or name == "embedding_bag" and args:  # its local variable `input` may have another shape
        table = given(1, "weight")
        if isinstance(source, torch.Tensor) and _is_plain(table) and table.dim() > 0:
            yield Picking(source, table.shape[0])
    elif plain in _ALONG or plain == "index_fill":
        axis, numbers = given(1, "dim"), given(2, "index")
        if _is_plain(source) and isinstance(axis, int) and -source.dim() <= axis < source.dim() \
                and isinstance(numbers, torch.Tensor):
            yield Picking(numbers, source.shape[axis], axis % source.dim(), plain == "index_fill")
    elif plain in _OF_ALL:
        numbers = given(1, "index")
        if _is_plain(source) and isinstance(numbers, torch.Tensor):
            yield Picking(numbers, source.numel(), from_end=True)
    elif name == "one_hot":
        count = given(1, "num_classes")
        if isinstance(source, torch.Tensor) and isinstance(count, int) and count > 0:
            yield Picking(source, count)
    elif plain in _INDEXED and _is_plain(source):
        yield from _indices(source, given(1, "indices"))


def _indices(source, index):
    """The Pickings of source[index]. A plain number is left out: PyTorch's error names it."""
    if isinstance(index, list) and not all(isinstance(number, int) for number in index):
        return  # its meaning depends on the version
    parts = index if isinstance(index, tuple) else (index,)
    axes = [_axes_of(part) for part in parts]
    axis = 0
    for part, count in zip(parts, axes):
        if part is Ellipsis:
            axis += source.dim() - sum(axes)
        elif count == 1 and not isinstance(part, (int, slice)) and axis < source.dim():
            picking = Picking(part, source.shape[axis], axis, from_end=True)
            if picking.numbers.dtype not in _MASKS:
                yield picking
        axis += count


def _axes_of(part):
    """How many axes one part of an index covers, Ellipsis aside."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, (int, slice)):
        return 1
    mask = part if isinstance(part, torch.Tensor) else torch.as_tensor(part, device="cpu")
    return mask.dim() if mask.dtype in _MASKS else 1


def _is_plain(tensor):
    return type(tensor) in values.PLAIN and tensor.layout == torch.strided and tensor.device.type == "cpu"
