# SPDX-License-Identifier: MIT
"""The loss of each step: what backward() was called on."""
import math

import torch

from . import Watcher, here, piece

_MOST = 4096  # kept; then every second one is dropped, and so on


class Losses(Watcher):
    """Keeps the loss of each step, or of every 2nd, 4th, ... one."""

    def __init__(self, observation):
        super().__init__(observation)
        self._now = []       # of the passes of this step: tensors of one element, detached
        self._kept = []      # (step, sum of the losses of its passes, number of passes)
        self._stride = 1
        self._where = {}
        self._first_bad = None  # the step, the first whose loss was not finite

    def loss(self, tensor):
        """Notes the loss of a pass."""
        if not self._where:
            self._where = here()
        if isinstance(tensor, torch.Tensor) and tensor.numel() == 1 and not tensor.is_complex():
            loss = self.agent.scaler.unscaled(tensor)
            if isinstance(loss, torch.Tensor):
                loss = loss.detach().clone()
            self._now.append(loss)

    def ends(self, step):
        """Notes that of the step."""
        now, self._now = self._now, []
        if not now or step % self._stride:
            return
        total = float(sum(float(one) for one in now))
        if not math.isfinite(total) and self._first_bad is None:
            self._first_bad = step
        self._kept.append((step, total, len(now)))
        if len(self._kept) >= _MOST:
            self._stride *= 2
            self._kept = [one for one in self._kept if one[0] % self._stride == 0]

    def evidence(self):
        """One piece: the course of the loss."""
        if not self._kept:
            return []
        values = [value for _, value, _ in self._kept]
        finite = [value for value in values if math.isfinite(value)]
        tenth = max(1, len(finite) // 10)
        mean = (lambda part: sum(part) / len(part))
        return [piece("loss-course", self._where, steps=len(values), first=values[0], last=values[-1],
                      first_step=self._kept[0][0], last_step=self._kept[-1][0], passes=self._kept[-1][2],
                      smallest=min(finite) if finite else None, largest=max(finite) if finite else None,
                      early=mean(finite[:tenth]) if finite else None, late=mean(finite[-tenth:]) if finite else None,
                      not_finite_since=self._first_bad, **_growth(self._kept))]


def _growth(kept):
    """From the smallest loss before the largest one to that: where the growth began, by how much each step multiplied
    it, and how many of the steps did."""
    values = [(step, value) for step, value, _ in kept if math.isfinite(value)]
    if len(values) < 2:
        return {}
    top = max(range(len(values)), key=lambda index: values[index][1])
    low = min(range(top + 1), key=lambda index: (values[index][1], -index))
    (begun, smallest), (ended, largest) = values[low], values[top]
    if low == top or smallest <= 0:
        return {}
    rises = sum(values[index + 1][1] > values[index][1] for index in range(low, top))
    return {"growth_since": begun, "growth_until": ended, "growth_from": smallest, "growth_to": largest,
            "growth": (largest / smallest) ** (1 / (ended - begun)), "growth_times": largest / smallest,
            "growth_rises": rises / (top - low)}
