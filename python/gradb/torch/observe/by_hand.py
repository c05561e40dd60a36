# SPDX-License-Identifier: MIT
"""Trainings without an optimizer: whether the tensors that get the gradients ever change."""

import torch

from .. import values
from ..swapping import Ref
from . import Watcher, here, piece

_MOST_NODES = 4096   # of a graph that are visited
_MOST_LEAVES = 256
_UPDATES = frozenset(("sub", "rsub", "add", "isub", "iadd", "addcdiv", "addcmul", "subtract"))


class _Leaf:
    """What is known of one tensor that gradients are accumulated in."""

    def __init__(self, tensor):
        self.ref = Ref(tensor)
        self.version, self.value = values.version_of(tensor), _some(tensor)
        self.passes = self.cleared = 0

    def is_at(self, tensor):
        """Whether it is that tensor, or a view of all of it (detach(), .data)."""
        own = self.ref()
        return own is tensor or own is not None and own.layout is tensor.layout is torch.strided \
            and own.shape == tensor.shape and own.data_ptr() == tensor.data_ptr() != 0


class ByHand(Watcher):
    """Follows the leaves of the loss while no optimizer steps."""

    def __init__(self, observation):
        super().__init__(observation)
        self._leaves = {}      # id -> _Leaf, of the first pass
        self._passes = 0       # observed ones
        self._over = False     # an optimizer has stepped, or a leaf has changed
        self._where, self._lost = {}, {}

    def before_step(self, optimizer):
        """There is an optimizer."""
        self._over = True
        self._leaves = {}

    def operator(self, call):
        """A sum or difference of a leaf and something, whose result may be forgotten."""
        if self._over or call.writes or self._lost or call.name not in _UPDATES or not call.args \
                or self.agent.in_backward:
            return
        given, made = call.args[0], call.result
        if isinstance(given, torch.Tensor) and isinstance(made, torch.Tensor) and given.shape == made.shape \
                and not made.requires_grad and any(leaf.is_at(given) for leaf in self._leaves.values()):
            self._lost = here()

    def loss(self, tensor):
        """A pass begins: its leaves are those of the first one, unchanged, or all is well."""
        if self._over or not self.observation.observes or not isinstance(tensor, torch.Tensor):
            return
        found = _leaves_of(tensor)
        if not found:
            return
        self._where = self._where or here()
        self._passes += 1
        if self._passes == 1:
            self._leaves = {id(one): _Leaf(one) for one in found}
            return
        for one in found:
            leaf = self._leaves.get(id(one))
            if leaf is None or leaf.ref() is not one or leaf.version != values.version_of(one) \
                    or leaf.value != _some(one):
                self._over = True
                self._leaves = {}
                return
            leaf.passes += 1
            leaf.cleared += one.grad is None or not bool(one.grad.detach().count_nonzero())

    def evidence(self):
        """One piece, if no leaf has changed."""
        if self._over or self._passes < 2 or not self._leaves:
            return []
        found = list(self._leaves.values())
        return [piece("never-updated", self._lost or self._where, leaves=len(found), passes=self._passes,
                      cleared=min(one.cleared for one in found), computed=bool(self._lost),
                      also=[self._where] if self._lost and self._where else [])]


def _leaves_of(tensor):
    """The tensors that a pass accumulates gradients in; [] if the graph is too large."""
    found, seen, waiting = [], set(), [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            found.append(variable)
        if len(seen) > _MOST_NODES or len(found) > _MOST_LEAVES:
            return []
        waiting.extend(next_node for next_node, _ in node.next_functions)
    return found


def _some(tensor):
    """A few elements; None: they cannot be read."""
    if type(tensor) not in values.PLAIN or tensor.layout is not torch.strided or tensor.device.type == "meta" \
            or not values.has_memory(tensor):
        return None
    flat = tensor.detach().reshape(-1)
    return flat[::max(1, flat.numel() // 8)][:8].tolist()
