# SPDX-License-Identifier: MIT
"""Random generators that are seeded again, so that what they draw repeats."""
import ctypes
import linecache
import random
import sys

import torch

from . import Watcher, here, piece
from .lines import all_lines

_MOST = 4096     # states that are kept
_BATCHES = 4     # of an epoch that are compared
_EPOCHS = 16
_VALUES = 256    # of a batch
_SEEDS = r"\bseed\(|manual_seed(_all)?\(|seed_everything\(|\bset_seed\(|Generator\(|default_rng\("


def _states():
    """(name, hash of the state) of each global generator. None of them draws."""
    yield "torch", hash(torch.get_rng_state().numpy().tobytes())
    yield "random", hash(random.getstate())
    numpy = sys.modules.get("numpy")
    mtrand = getattr(getattr(numpy, "random", None), "mtrand", None)
    if mtrand is not None:
        bits = mtrand._rand._bit_generator
        if type(bits).__name__ == "MT19937":  # in memory: 624 words of 4 bytes, and how many are used
            yield "numpy.random", hash(ctypes.string_at(bits.ctypes.state_address, 4 * 625))
        else:
            yield "numpy.random", hash(repr(bits.state))


class Seeds(Watcher):
    """Compares the states of the global generators after each step, and the first batches of each epoch."""

    def __init__(self, observation):
        super().__init__(observation)
        self._known = {}     # name -> {hash: the step}
        self._last = {}      # name -> hash after the last step
        self._again = {}     # name -> [steps after which an earlier state came again, the first such step, that one]
        self._lines = []
        self._epochs = {}    # id of a dataset -> marks of the first batches of each iteration
        self._batch_at = {}

    def batch(self, batch):
        """Takes a mark of one of the first batches of an iteration."""
        number, dataset, shuffles = self.agent.events.loader.position()
        if not shuffles or not 0 < number <= _BATCHES:
            return
        for _ in range(4):
            if isinstance(batch, dict):
                batch = next(iter(batch.values()), None)
            elif isinstance(batch, (tuple, list)):
                batch = batch[0] if batch else None
        if not isinstance(batch, torch.Tensor) or not batch.dim() or batch.shape[0] < 2:
            return
        self._batch_at = self._batch_at or here()
        epochs = self._epochs.setdefault(dataset, [])
        if number == 1 and len(epochs) < _EPOCHS:
            epochs.append([])
        if epochs and len(epochs[-1]) == number - 1:
            epochs[-1].append(tuple(batch.detach().reshape(batch.shape[0], -1)[:, 0][:_VALUES].tolist()))

    def ends(self, step):
        """Looks at the states."""
        if not self._lines and self.observation.observes:
            self._lines = [one for one in all_lines(_SEEDS) if _is_inside(one)]
        for name, state in _states():
            known = self._known.setdefault(name, {})
            if self._last.get(name) == state or len(known) >= _MOST:
                continue  # nothing was drawn
            self._last[name] = state
            if state in known:
                again = self._again.setdefault(name, [0, step, known[state]])
                again[0] += 1
            known.setdefault(state, step)

    def evidence(self):
        """The pieces."""
        found = []
        for name, (count, step, before) in self._again.items():
            lines = [one for one in self._lines if _is_of(one, name)] or self._lines
            found.append(piece("reseeded", lines[0] if lines else self._batch_at, generator=name, count=count,
                               step=step, before=before, steps=len(self._known[name]) + count,
                               also=lines[1:3] or None))
        for epochs in self._epochs.values():
            orders = [tuple(marks) for marks in epochs if len(marks) >= 2]
            if len(orders) < 3 or len(set(orders)) > 1 or len(set(orders[0])) < 2:
                continue
            found.append(piece("same-order", self._batch_at, epochs=len(orders), batches=len(orders[0]),
                               also=[one for one in self._lines if _is_of(one, "torch")][:2] or None))
        return found


def _text(place):
    return linecache.getline(place["file"], place["line"])


def _is_inside(place):
    """Whether a line is in a function or a loop, or in any other block."""
    return _text(place)[:1].isspace()


def _is_of(place, name):
    """Whether a line that seeds is about that generator."""
    text = _text(place)
    if name == "torch":
        return "manual_seed" in text or "Generator" in text
    return "np." in text or "numpy" in text if name == "numpy.random" else "np." not in text and "torch" not in text
