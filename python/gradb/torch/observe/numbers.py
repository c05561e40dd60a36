# SPDX-License-Identifier: MIT
"""Differences whose digits cancel: a variance as the mean of the squares minus the square of the mean."""
import torch

from . import Watcher, piece, trace

_SUBTRACTIONS = frozenset(("sub", "sub_", "isub", "subtract"))
_SCALED = trace.SAME | {"mean", "sum", "nanmean", "div", "truediv", "true_divide", "mul", "multiply", "getitem"}
_STEPS = 16         # operators between a square and the difference
_ROUNDED = 16       # of the type's steps at 1: what is left of the larger number is rounding
_MOST_PLACES = 32
_MOST_ELEMENTS = 65536


class Numbers(Watcher):
    """Compares a difference with what it is a difference of."""

    operators = _SUBTRACTIONS

    def __init__(self, observation):
        super().__init__(observation)
        self.trace = trace.of(observation)
        self._found = {}  # (file, line) -> piece

    def operator(self, call):
        """A difference of two squares, or of means of squares."""
        if len(call.args) != 2 or self.agent.in_backward \
                or self.agent.steps.is_updating():
            return
        made = self.trace.see(call)
        if made is None or made.turned or call.writes or not isinstance(call.result, torch.Tensor):
            return
        first, second = made.args
        if isinstance(first, trace.Made) and isinstance(second, trace.Made) and _is_square(second) \
                and first.shape == made.shape and not made.integer:
            self._measure(call)

    def _measure(self, call):
        large, left = trace.read(call.args[0], _MOST_ELEMENTS), trace.read(call.result, _MOST_ELEMENTS)
        if large is None or left is None or call.args[0].dtype != call.result.dtype:
            return
        some = large > 0
        if not bool(some.any()):
            return
        large, left = large[some], left[some]
        rounded = left.abs() <= _ROUNDED * torch.finfo(call.result.dtype).eps * large
        where = call.where()
        key = where.get("file"), where.get("line")
        known = self._found.get(key)
        if known is None:
            if len(self._found) >= _MOST_PLACES:
                return
            known = self._found[key] = piece("cancelled", where, looks=0, share=0.0, noise=0, negative=0.0,
                                             dtype=str(call.result.dtype)[6:])
        known["looks"] += 1
        known["share"] += float(rounded.double().mean())
        known["negative"] += float((left < 0).double().mean())
        known["noise"] += bool((rounded & (left != 0)).any())
        known["size"] = float(large.median()) ** 0.5
        known["left"] = float(left.abs().median())

    def evidence(self):
        """A piece for each line, with means of all that was seen there."""
        return [dict(one, share=one["share"] / one["looks"], negative=one["negative"] / one["looks"])
                for one in self._found.values()]


def _is_square(made):
    """Whether a tensor is a square, or a mean or multiple of squares."""
    for _ in range(_STEPS):
        if not isinstance(made, trace.Made):
            return False
        if made.name == "square" or made.name in ("pow", "pow_", "__pow__") and made.given(1, "exponent") == 2:
            return True
        parents = made.parents()
        if made.name in ("mul", "multiply") and len(parents) == 2 and parents[0] is parents[1]:
            return True
        if made.name not in _SCALED or not parents:
            return False
        made = parents[0]
    return False
