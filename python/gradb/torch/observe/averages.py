# SPDX-License-Identifier: MIT
"""Averages of weights over steps (EMA): how much of itself an average keeps in each update, and who reads it."""
import math

import torch

from .. import values
from ..optim import parameters_of
from ..swapping import Ref
from . import Watcher, here, node_of, piece

_MOST_TENSORS = 4096  # trained parameters, and averages
_MOST_LINES = 8
_COPIES = frozenset(("detach", "to", "copy_", "clone", "cpu", "float", "sub", "norm", "allclose", "equal"))
_MULTIPLIES = frozenset(("mul", "multiply", "rmul", "__rmul__"))


class _Of:
    """The averages that one line updates."""

    def __init__(self, where, node, step):
        self.where, self.node, self.first = where, node, step
        self.last = self.looks = 0  # the last observed step that updated them, and how many did
        self.logs = 0.0             # of the decays of those steps
        self.decay = self.share = None
        self.read = self.reads = 0  # the last observed step in which another operator read one, and how many did


class Averages(Watcher):
    """Looks for `a = d * a + (1 - d) * w` with a trained weight w, in observed steps."""

    def __init__(self, observation):
        super().__init__(observation)
        self._lines = {}     # (file, line) -> _Of
        self._trained = {}   # address -> shape of the trained parameters
        self._averages = {}  # address -> (_Of, whether it is updated in place)
        self._scaled = {}    # id -> (weak reference, address of what was multiplied, factor), of this step
        self._step = self._observed = 0

    def begins(self, step):
        """Which parameters are trained."""
        self._step, self._scaled, self._trained = step, {}, {}
        optimizers = self.agent.optimizers
        for optimizer in filter(None, map(optimizers.by_name, optimizers.names())):
            for one in parameters_of(optimizer):
                if len(self._trained) < _MOST_TENSORS:
                    self._trained[_address(one)] = tuple(one.shape)
        self._trained.pop(0, None)

    def operator(self, call):
        """Notes products with a number, sums of two of them, and who reads averages."""
        if not self._trained or self.agent.in_backward or self.agent.steps.is_updating():
            return
        if call.name in ("lerp_", "lerp") and len(call.args) == 3:
            weight = call.args[2]
            if isinstance(weight, (int, float)) and self._is_trained(call.args[1]):
                self._note(call.args[0], 1.0 - weight, float(weight), call)
        elif call.name == "_foreach_lerp_" and len(call.args) == 3 and isinstance(call.args[2], (int, float)):
            for average, source in zip(call.args[0], call.args[1]):
                if self._is_trained(source):
                    self._note(average, 1.0 - call.args[2], float(call.args[2]), call)
        elif call.name in ("add", "add_", "iadd", "radd") and len(call.args) > 1:
            self._sum(call)
        elif call.name in _MULTIPLIES or call.name in ("mul_", "imul"):
            self._product(call)
        elif self._averages and call.name not in _COPIES:
            for one in call.args:
                known, lasts = self._averages.get(_address(one), (None, False)) if isinstance(one, torch.Tensor) else (
                    None, False)
                # the memory of a tensor that each update makes again may be another tensor's by now
                if known is not None and known.read != self._step and (lasts or isinstance(one, torch.nn.Parameter)):
                    known.read = self._step
                    known.reads += 1

    def _product(self, call):
        numbers = [one for one in call.args if isinstance(one, (int, float)) and not isinstance(one, bool)]
        tensors = [one for one in call.args if isinstance(one, torch.Tensor)]
        if len(numbers) == len(tensors) == 1 and _is_apart(call.result, call) \
                and len(self._scaled) < _MOST_TENSORS:
            self._scaled[id(call.result)] = Ref(call.result), _address(tensors[0]), float(numbers[0])

    def _factor_of(self, tensor):
        """(address of what it is a multiple of, the factor), or None."""
        held = self._scaled.get(id(tensor))
        return held[1:] if held is not None and held[0]() is tensor else None

    def _sum(self, call):
        first, second = call.args[:2]
        if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
            return
        alpha = call.kwargs.get("alpha", 1)
        one, other = self._factor_of(first), self._factor_of(second)
        if one is not None and one[0] in self._trained and other is not None and alpha == 1:
            first, one, other = second, other, one  # w * (1 - d) + a * d
        if one is None or one[0] in self._trained or not isinstance(alpha, (int, float)):
            return
        if other is not None and other[0] in self._trained:
            self._note(first, one[1], other[1] * alpha, call, one[0])
        elif other is None and self._is_trained(second):
            self._note(first, one[1], float(alpha), call, one[0])

    def _is_trained(self, tensor):
        return isinstance(tensor, torch.Tensor) and self._trained.get(_address(tensor)) == tuple(tensor.shape)

    def _note(self, average, decay, share, call, address=None):
        address = address or _address(average)
        if not address or address in self._trained or not _is_apart(average, call):
            return
        where = here()
        key = where.get("file"), where.get("line")
        known = self._lines.get(key)
        if known is None:
            if len(self._lines) >= _MOST_LINES:
                return
            known = self._lines[key] = _Of(where, node_of(self.agent, average), self._step)
        if known.last != self._step:
            known.last = self._step
            known.looks += 1
            known.logs += math.log(decay) if decay > 0 else -math.inf
        known.decay, known.share = decay, share
        if len(self._averages) < _MOST_TENSORS:
            self._averages[address] = known, call.writes

    def ends(self, step):
        """Counts."""
        if self.observation.observes:
            self._observed += 1

    # ---- evidence ----

    def evidence(self):
        """One piece for each line that updates averages."""
        found = []
        for known in self._lines.values():
            updates = max(known.looks, self.agent.steps.computed() - known.first + 1) if known.last * 2 >= \
                self.agent.steps.computed() else known.looks
            found.append(piece("average", known.where, node=known.node or None, decay=known.decay, share=known.share,
                               kept=math.exp(known.logs / known.looks * updates), updates=updates, looks=known.looks,
                               reads=known.reads, ended=self.observation.ended))
        return found


def _is_apart(tensor, call):
    """Whether it is a tensor that no graph is recorded for."""
    return isinstance(tensor, torch.Tensor) and not (tensor.requires_grad and call.grad)


def _address(tensor):
    """0: it has none."""
    try:
        return tensor.data_ptr() if tensor.layout is torch.strided and not values.is_opaque(tensor) else 0
    except (RuntimeError, AttributeError):
        return 0
