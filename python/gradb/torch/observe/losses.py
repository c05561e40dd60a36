# SPDX-License-Identifier: MIT
"""The loss of each step: what backward() was called on."""
import math
import weakref

import torch

from .. import devices, values
from . import Watcher, here, piece

_BEFORE = 32   # losses that a spike is compared with
_LEAST = 16    # of them
_SPIKE = 4     # times the median
_SPIKES = 8    # that are kept
_FAR = 5       # times the size of other rows
_MOST = 4096  # kept; then every second one is dropped, and so on


class Losses(Watcher):
    """Keeps the loss of each step, or of every 2nd, 4th, ... one."""

    def __init__(self, observation):
        super().__init__(observation)
        self._now = []       # of the passes of this step: numbers, or on their way from a device
        self._late = []      # (step, losses of its passes) of ended steps, as long as they are on their way
        self._kept = []      # (step, sum of the losses of its passes, number of passes)
        self._stride = 1
        self._where = {}
        self._first_bad = None  # the step, the first whose loss was not finite

    def loss(self, tensor):
        """Notes the loss of a pass."""
        if not self._where:
            self._where = here()
        if isinstance(tensor, torch.Tensor) and tensor.numel() == 1 and not tensor.is_complex():
            self._now.append(devices.number(self.agent.scaler.unscaled(tensor)))

    def starts_over(self):
        """The course of the loss is that of the last training."""
        self._now, self._late, self._kept, self._stride, self._where = [], [], [], 1, {}

    def ends(self, step):
        """Notes that of the step."""
        now, self._now = self._now, []
        if now and step % self._stride == 0:
            self._late.append((step, now))
            self._take_late(False)

    def _take_late(self, waits):
        """Keeps the losses that have come, or all."""
        while self._late and (waits or devices.are_there(self._late[0][1])):
            step, losses = self._late.pop(0)
            total = float(sum(map(float, losses)))
            if not math.isfinite(total) and self._first_bad is None:
                self._first_bad = step
            self._kept.append((step, total, len(losses)))
        if len(self._kept) >= _MOST:
            self._stride *= 2
            self._kept = [one for one in self._kept if one[0] % self._stride == 0]

    def evidence(self):
        """One piece: the course of the loss."""
        self._take_late(True)
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


class Spikes(Watcher):
    """Losses far above those before, the norm of the gradients then, and what is special in that batch."""

    def __init__(self, observation):
        super().__init__(observation)
        self._sum = None     # the loss of this step so far
        self._before = []    # losses of the last steps
        self._norms = []     # of the gradients, in observed steps
        self._batch = None   # the tensors of the last batch of a loader, until the step ends
        self._sizes = {}     # place in the batch -> typical sizes of its rows, of observed steps
        self._found = []
        self._where = {}
        self._optimizer = None  # that stepped in this step
        self._known = weakref.WeakSet()  # optimizers that have stepped

    def begins(self, _step):
        """An observed step begins."""
        self._sum = None

    def batch(self, batch):
        """Keeps it until the step ends."""
        if not self.agent.events.loader.is_apart():
            self._batch = _tensors(batch)
            if self.observation.observes:
                for place, tensor in self._batch:
                    sizes = _sizes_of(tensor)
                    if sizes is not None and len(self._sizes.setdefault(place, [])) < 16:
                        self._sizes[place].append(float(sizes.median()))

    def loss(self, tensor):
        """Adds up the losses of the step."""
        if isinstance(tensor, torch.Tensor) and tensor.numel() == 1 and not tensor.is_complex():
            self._where = self._where or here()
            loss = self.agent.scaler.unscaled(tensor)
            loss = loss.detach() if isinstance(loss, torch.Tensor) else loss
            self._sum = loss if self._sum is None else self._sum + loss

    def after_step(self, optimizer):
        """Whose gradients are examined when the step ends. The first step of another optimizer is that of another
        training: its losses are not compared with those before."""
        if optimizer not in self._known:
            self._known.add(optimizer)
            self._before, self._norms = [], []
        self._optimizer = optimizer

    def _special(self):
        """The rows of the batch that differ from the others, or all of them from those of other batches."""
        for place, tensor in self._batch or ():
            sizes = _sizes_of(tensor)
            usual = _median(self._sizes.get(place, []))
            if sizes is None or not usual:
                continue
            rows = (sizes > _FAR * usual).nonzero().reshape(-1).tolist()
            if rows:
                return {"rows": ", ".join(map(str, rows[:8])) + (", ..." if len(rows) > 8 else ""), "of": len(sizes),
                        "count": len(rows), "part": place, "size": float(sizes[rows].median()), "typical": usual}
        return {}

    def ends(self, step):
        """Keeps the loss, or the spike."""
        loss = float(self._sum) if self._sum is not None else math.nan
        if _is_spike(loss, self._before):
            if len(self._found) < _SPIKES:
                self._found.append(dict(step=step, loss=loss, usual=_median(self._before), norm=_norm(self._optimizer),
                                        usual_norm=_median(self._norms), **self._special(),
                                        **self.agent.events.loader.numbers()))
        elif self._sum is not None:
            self._before = (self._before + [loss])[-_BEFORE:]
            norm = _norm(self._optimizer) if self.observation.observes else None
            self._norms = (self._norms + [norm])[-16:] if norm is not None else self._norms
        self._sum = self._batch = self._optimizer = None

    def evidence(self):
        """A piece for the largest spike, and how many there were."""
        if not self._found:
            return []
        largest = max(self._found, key=lambda one: (one.get("count", 0) > 0, one["loss"] / one["usual"]))
        explained = [one for one in self._found if one.get("count")]
        largest = {key: value for key, value in largest.items() if value is not None}
        return [piece("loss-spike", self._where, spikes=len(self._found), explained=len(explained),
                      steps=", ".join(str(one["step"]) for one in self._found), last=_median(self._before), **largest)]


def _norm(optimizer):
    """The norm of the gradients that are left of a step; None: there are none, or they are parts of several ranks."""
    held = [one.grad for group in optimizer.param_groups for one in group["params"] if one.grad is not None
            and one.grad.layout is torch.strided] if optimizer is not None else []
    if any(map(values.is_opaque, held)):
        return None
    norms = [torch.linalg.vector_norm(one.detach(), dtype=torch.promote_types(one.dtype, torch.float32)) for one in held
             if not one.is_complex()]
    norm = float(torch.stack([one.to(norms[0].device, torch.float64) for one in norms]).norm()) if norms else 0.0
    return norm if norm > 0 else None


def _least_float(tensor):
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32


def _is_spike(loss, before):
    """Whether a loss is far above those before, also in terms of how they vary."""
    if len(before) < _LEAST or not math.isfinite(loss):
        return False
    usual = _median(before)
    spread = _median([abs(one - usual) for one in before])
    return usual > 0 and loss > _SPIKE * usual and loss > usual + 10 * spread and loss > 2 * max(before)


def _median(numbers):
    ordered = sorted(numbers)
    return ordered[len(ordered) // 2] if ordered else None


def _tensors(batch, name=""):
    """(name, tensor) of a batch."""
    if isinstance(batch, torch.Tensor):
        return [(name or "batch", batch)]
    if isinstance(batch, dict):
        return [one for key, value in list(batch.items())[:8] for one in _tensors(value, str(key))]
    if isinstance(batch, (tuple, list)):
        return [one for place, value in enumerate(batch[:8]) for one in _tensors(value, "%s[%d]" % (
            name or "batch", place))]
    return []


def _sizes_of(tensor):
    """The mean magnitude of each row of floating-point numbers; None: it has none."""
    if type(tensor) is not torch.Tensor or not tensor.is_floating_point() or tensor.dim() < 1 or \
            tensor.shape[0] < 2 or tensor.numel() > 1 << 22 or tensor.layout is not torch.strided:
        return None
    return tensor.detach().reshape(tensor.shape[0], -1).abs().mean(1).to("cpu", torch.float64)


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
