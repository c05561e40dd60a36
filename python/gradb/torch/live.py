# SPDX-License-Identifier: MIT
"""Where a node's value is when the debugger asks. Nothing is kept alive for that: outputs are found by weak references,
and a value that is gone or was overwritten is reported as such."""

from .. import _lib, native
from .swapping import Ref
from .values import NoValue, version_of


def _gone():
    """In place of a weak reference: its tensor is gone."""
    return None


class Live(native.base("Live")):
    """Weak references to the outputs of this step's nodes and the previous step's, and functions that return lasting
    values.

    kept: numbers of the nodes for which on_kept(number, tensors) is called when they have run; scale: what a GradScaler
    multiplies gradients by in the running backward pass."""

    def __init__(self):
        self._step = 0
        self._now = {}      # node number -> (reference, version, ...) or None per slot, of this step
        self._before = {}   # of the previous step
        self._scales = {}   # node number -> scale when it ran last, if not 1
        self._lasting = {}  # node number -> function that returns the tensor, or None when there is none
        self._leaves = {}   # node number of a gradient -> function that returns its parameter, or None
        self.kept = frozenset()
        self.on_kept = None
        self.scale = 1.0
        self.seen = None  # native.Context, which knows what backward nodes have made without Python

    def ran(self, number, step, tensors):
        """Records a node's outputs of this step: a tensor or None per slot."""
        self.ran_as(number, step, tuple(None if tensor is None else (Ref(tensor), version_of(tensor))
                                        for tensor in tensors))

    def ran_as(self, number, step, records):
        """The same, as (weak reference, version, ...) or None per slot."""
        if step != self._step:
            self._before = self._now if step == self._step + 1 else {}
            self._now = {}
            self._step = step
        self._now[number] = records
        if self.scale != 1.0:
            self._scales[number] = self.scale
        elif self._scales:
            self._scales.pop(number, None)
        if number in self.kept:
            self.on_kept(number, [None if record is None else record[0]() for record in records])

    def _settle(self):
        """Records what gradb._native has seen since."""
        for number, step, records in self.seen.take_seen() if self.seen is not None else ():
            if step == self._step - 1:
                self._before[number] = records
            elif step >= self._step:
                self.ran_as(number, step, records)

    def let_go(self, number, slot, tensor):
        """The tensor is not the node's output any more."""
        for known in (self._now, self._before):
            records = known.get(number, ())
            if slot < len(records) and records[slot] is not None and records[slot][0]() is tensor:
                known[number] = (*records[:slot], (_gone, 0), *records[slot + 1:])

    def lasts(self, number, get):
        """The node's only value is what `get()` returns whenever it is asked for."""
        self._lasting[number] = get

    def gradient(self, number, leaf):
        """The node's only value is the gradient of the parameter that `leaf()` returns."""
        self._leaves[number] = leaf

    def leaf(self, number):
        """The parameter whose gradient the node is; None for another node, or when it is gone."""
        get = self._leaves.get(number)
        return get() if get is not None else None

    def getter(self, number):
        """The function that lasts() was given."""
        return self._lasting.get(number)

    def lasting(self, number):
        """The tensor of a node with a lasting value; None when it has none now, or for another node."""
        leaf = self._leaves.get(number)
        if leaf is not None:
            parameter = leaf()
            return parameter.grad if parameter is not None else None
        get = self._lasting.get(number)
        return get() if get is not None else None

    def is_lasting(self, number):
        """Whether its value lasts, rather than being made in each step."""
        return number in self._lasting or number in self._leaves

    def run_scale(self, number):
        """What its gradients were multiplied by when it ran."""
        return self._scales.get(number, 1.0)

    def counts(self):
        """Numbers of references: (nodes of this step, of the previous one, lasting values)."""
        self._settle()
        return len(self._now), len(self._before), len(self._lasting) + len(self._leaves)

    def find(self, number, slot):
        """(tensor, step) of a node's output; step -1 for a lasting value, which is current. NoValue."""
        if number in self._leaves:
            return self._find_gradient(number, slot), -1
        get = self._lasting.get(number)
        if get is not None:
            tensor = get() if slot == 0 else None
            if tensor is None:
                raise NoValue("the script no longer has this tensor", _lib.GONE)
            return tensor, -1
        if self.seen is not None and self.seen.has_seen(number):
            self._settle()
        if number in self._now:
            return self._find_output(self._now[number], slot), self._step
        if number in self._before:
            return self._find_output(self._before[number], slot), self._step - 1
        raise NoValue("it has not run in this step or the previous one while the debugger was watching")

    def _find_gradient(self, number, slot):
        leaf = self.leaf(number)
        if leaf is None:
            raise NoValue("the script no longer has its parameter", _lib.GONE)
        if leaf.grad is None or slot != 0:
            raise NoValue("it has no gradient: no backward pass has reached it since zero_grad()")
        return leaf.grad

    @staticmethod
    def _find_output(records, slot):
        if slot >= len(records) or records[slot] is None:
            raise NoValue("its output %d is not a tensor" % slot)
        tensor = records[slot][0]()
        if tensor is None:
            raise NoValue("the script no longer has it; stop right after the operator to see it")
        if version_of(tensor) != records[slot][1]:
            raise NoValue("it was overwritten in place; stop right after the operator to see it")
        return tensor
