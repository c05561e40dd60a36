# SPDX-License-Identifier: MIT
"""What an update is made of: the rate in each step; in observed steps gradients, clipping, decay, and how far the
weights move. Of large parameters the first elements stand for all."""
import itertools
import math
import weakref

import torch

from .. import values
from ..optim import parameters_of
from ..swapping import Ref
from . import Watcher, here, parameter_name, piece
from .lines import call_of, frame_in

_MOST_PARAMETERS = 64
_MOST_ELEMENTS = 16384  # of one parameter
_MOST_STEPS = 64        # observed ones that are kept
_CLIPPING = frozenset(("norm", "vector_norm", "linalg_vector_norm", "_foreach_norm", "mul_", "_foreach_mul_", "clamp_",
                       "_foreach_clamp_min_", "_foreach_clamp_max_", "stack", "clamp"))  # operators of clip_grad_*
_HALF = (torch.float16, torch.bfloat16)


class _Of:
    """What is known of one optimizer."""

    def __init__(self):
        self.rates = []     # (step, largest rate), where it changed
        self.steps = self.zero = 0
        self.low = self.deep = 0  # steps with less than 1 % and 0.1 % of the largest rate so far
        self.falls = 0      # how often the rate was lowered
        self.groups = {}    # index of a parameter group -> steps in which its rate was 0, and those of others not
        self.top = 0.0
        self.low_at = None  # the first of them
        self.first = self.last = None
        self.at = {}
        self.passed = None  # norm of the gradients after the last pass
        self.before = []    # (parameters, their parts in one tensor, those of their gradients) of a group
        self.now = None
        self.kept = []      # a dict for each observed step
        self.turns = 0      # how often the rate began to rise or fall
        self.direction = 0


class Updates(Watcher):
    """Looks at parameters before and after each step of their optimizer."""

    def __init__(self, observation):
        super().__init__(observation)
        self._known = weakref.WeakKeyDictionary()
        self._clips = []      # of this step: (where, scale of the gradients)
        self._clip = {}       # the last one
        self._clipped_scaled = self._clipped_late = self._clip_steps = 0
        self._past = 0        # steps of optimizers past the scaler, with gradients that it has scaled
        self._past_at = {}
        self._past_scale = 1.0
        self._passes = 0      # since an optimizer stepped
        self._factor = None   # by which the loss was multiplied
        self._made = []       # numbers that the program has multiplied: (weak reference, factor, where)
        self._epoch = None
        self._epochs = 0
        self._first_epoch = 0  # steps in it
        self._scheduler_at = {}
        self._series = {}     # line that makes optimizers -> [how many have stepped, their steps, where, class]

    def _of(self, optimizer):
        known = self._known.get(optimizer)
        if known is None:
            known = self._known[optimizer] = _Of()
        return known

    # ---- the loss and clipping ----

    def operator(self, call):
        """Notes numbers that are multiplied, and clipping."""
        result = call.result
        if call.is_forward() and isinstance(result, torch.Tensor) and result.numel() == 1:
            factor = _factor(call)
            if factor is not None:
                self._made.append((Ref(result), factor, here()))
                del self._made[:-8]
        if not self._clips and call.name in _CLIPPING and not self.agent.in_backward \
                and not self.agent.steps.is_updating() and frame_in("clip_grad.py"):
            scaler = self.agent.scaler
            self._clips.append(self._passes)
            self._clip = here()
            self._clip_steps += 1
            self._clipped_scaled += bool(scaler.scaling) and self._scale() != 1.0
            self._clipped_late += self._passes == 0

    def _scale(self):
        main = self.agent.steps.main()
        if main is None:
            return 1.0
        return next((self.agent.scaler.scale_of(one) for group in main.param_groups for one in group["params"]
                     if one.grad is not None), 1.0)

    def loss(self, tensor):
        """A pass begins."""
        if self.observation.observes:
            made = next((one for one in reversed(self._made) if one[0]() is tensor), None)
            self._factor = made[1:] if made else None

    def passed(self):
        """The gradients as the pass left them."""
        self._passes += 1
        if not self.observation.observes:
            return
        optimizers = self.agent.optimizers
        for optimizer in filter(None, map(optimizers.by_name, optimizers.names())):
            self._of(optimizer).passed = _norm(_gradients(optimizer))

    # ---- steps ----

    def before_step(self, optimizer):
        """The rate, and in observed steps the parameters."""
        known = self._of(optimizer)
        self._note_series(known, optimizer)
        self._note_rate(known, optimizer)
        self._note_scale(optimizer)
        if not self.observation.observes:
            return
        known.at = here()
        known.before = []
        gradient = size = decay = 0.0
        for group in optimizer.param_groups:
            held = [(one, _part(one), _part(one.grad)) for one in group["params"][:_MOST_PARAMETERS]]
            held = [(one, part, grad) for one, part, grad in held
                    if part is not None and grad is not None and part.shape == grad.shape and part.numel()]
            if not held:
                continue
            parts, grads = _joined([part for _, part, _ in held]), _joined([grad for _, _, grad in held])
            known.before.append(([one for one, _, _ in held], parts, grads))
            gradient += float(torch.linalg.vector_norm(grads)) ** 2
            square = float(torch.linalg.vector_norm(parts)) ** 2
            size += square
            weight = group.get("weight_decay", 0)
            decay += float(weight) ** 2 * square if isinstance(weight, (int, float)) else 0.0
        known.now = {"step": self.agent.steps.step, "passed": known.passed, "gradient": math.sqrt(gradient),
                     "whole": _norm(_gradients(optimizer)),
                     "weight": math.sqrt(size), "decay": math.sqrt(decay), "rate": known.last,
                     "scaled": self.agent.scaler.scaling}

    def _note_series(self, known, optimizer):
        """Optimizers that one line makes again and again: each forgets what the one before it had gathered."""
        at = self.agent.optimizers.made_at(optimizer)
        line = at.get("file"), at.get("line")
        if known.steps == 0 and (line in self._series or len(self._series) < 16):
            self._series.setdefault(line, [0, 0, at, type(optimizer).__name__])[0] += 1
        if line in self._series:
            self._series[line][1] += 1

    def _note_scale(self, optimizer):
        """A step that is not the scaler's, of gradients that it has scaled."""
        scaler = self.agent.scaler
        if not scaler.scaling or scaler.stepping is not None:
            return
        scale = next((scaler.scale_of(one) for one in parameters_of(optimizer) if one.grad is not None), 1.0)
        if scale != 1.0:
            self._past += 1
            self._past_at, self._past_scale = self._past_at or here(), scale

    def _note_rate(self, known, optimizer):
        found = [group.get("lr") for group in optimizer.param_groups]
        found = [float(one) for one in found if isinstance(one, (int, float))
                 or self.observation.observes and isinstance(one, torch.Tensor) and one.numel() == 1]
        known.steps += 1
        if not found:
            return
        rate = max(found)
        for index, one in enumerate(found if rate > 0 and len(found) > 1 else ()):
            if one == 0:
                known.groups[index] = known.groups.get(index, 0) + 1
        known.zero += rate == 0
        known.top = max(known.top, rate)
        known.low += rate < 0.01 * known.top
        known.deep += rate < 0.001 * known.top
        known.falls += known.last is not None and rate < known.last
        if rate < 0.01 * known.top and known.low_at is None:
            known.low_at = known.steps
        if known.last is not None and rate != known.last:
            direction = 1 if rate > known.last else -1
            known.turns += direction != known.direction and known.direction != 0
            known.direction = direction
        known.first = rate if known.first is None else known.first
        known.last = rate

    def after_step(self, optimizer):
        """How far they have moved."""
        self._passes, self._clips = 0, []
        known = self._of(optimizer)
        if not self.observation.observes or known.now is None:
            return
        moved, stuck, meant, half, count = 0.0, 0, 0, 0, 0
        for parameters, before, grads in known.before:
            parts = [_part(one) for one in parameters]
            if any(part is None for part in parts) or sum(part.numel() for part in parts) != before.numel():
                continue
            move = _joined(parts) - before
            moved += float(torch.linalg.vector_norm(move)) ** 2
            wanted = grads != 0
            meant += int(wanted.count_nonzero())
            stuck += int((wanted & (move == 0)).count_nonzero())
            count += before.numel()
            half += sum(part.numel() for part in parts if part.dtype in _HALF)
        now, known.now, known.before = known.now, None, []
        now.update(moved=math.sqrt(moved), meant=meant, stuck=stuck, half=half / count if count else 0, count=count)
        known.kept.append(now)
        if len(known.kept) > _MOST_STEPS:
            del known.kept[_MOST_STEPS // 2]
        if not self._scheduler_at:
            for scheduler, _ in self.agent.rates.schedulers(self.agent.optimizers.name_of(optimizer)):
                self._scheduler_at = call_of(scheduler, "step")

    def ends(self, step):
        """Counts epochs."""
        epoch = self.agent.events.loader.place()[0]
        if epoch and epoch != self._epoch:
            self._epoch = epoch
            self._epochs += 1
        self._first_epoch += epoch != 0 and self._epochs == 1

    # ---- evidence ----

    def evidence(self):
        """For each optimizer its rates, and its updates."""
        found = []
        for optimizer, known in list(self._known.items()):
            if not known.steps:
                continue
            name = self.agent.optimizers.name_of(optimizer)
            made = self.agent.optimizers.made_at(optimizer)
            group = optimizer.param_groups[0] if optimizer.param_groups else {}
            momentum = group.get("momentum")
            kind = {"optimizer": name, "kind_of": type(optimizer).__name__, "adapts": "betas" in group,
                    "momentum": float(momentum) if isinstance(momentum, (int, float)) and momentum else None}
            found.append(self._rate(optimizer, known, kind, made))
            found += self._still_groups(optimizer, known, made)
            if known.kept:
                found.append(self._update(optimizer, known, kind, made, group))
        found += self._elsewhere()
        found += [piece("optimizer-series", at, optimizers=made, steps=steps, kind_of=kind)
                  for made, steps, at, kind in self._series.values() if made > 1]
        if self._clip_steps:
            found.append(piece("clip", self._clip, clippings=self._clip_steps, scaled=self._clipped_scaled,
                               late=self._clipped_late))
        if self._past:
            found.append(piece("past-scaler", self._past_at, times=self._past, factor=self._past_scale, steps=sum(
                one.steps for one in self._known.values())))
        if self._factor:
            found.append(piece("loss-factor", self._factor[1], factor=self._factor[0]))
        return found

    def _still_groups(self, optimizer, known, made):
        """Parameter groups whose rate is 0 in each step, with parameters that have gradients."""
        found = []
        for index, count in known.groups.items():
            own = optimizer.param_groups[index]["params"] if index < len(optimizer.param_groups) else ()
            learns = [one for one in own if one.requires_grad and one.grad is not None]
            if count == known.steps and learns:
                found.append(piece("still-group", made or known.at, node=parameter_name(self.agent, learns[0]),
                                   group=index, steps=count, count=len(learns), rate=known.top,
                                   optimizer=self.agent.optimizers.name_of(optimizer)))
        return found

    def _elsewhere(self):
        """Schedulers of optimizers that never step, while others do."""
        optimizers, found = self.agent.optimizers, []
        for name in optimizers.names():
            optimizer = optimizers.by_name(name)
            if optimizer is None or optimizer in self._known and self._known[optimizer].steps:
                continue
            for scheduler, _ in self.agent.rates.schedulers(name):
                count = getattr(scheduler, "_step_count", 0)
                found.append(piece("scheduler-elsewhere", optimizers.made_at(optimizer), optimizer=name,
                                   scheduler=type(scheduler).__name__, scheduled=count - 1 if count else None,
                                   steps=max((one.steps for one in self._known.values()), default=0)))
        return found

    def _rate(self, optimizer, known, kind, made):
        scheduler = next((one for one, _ in self.agent.rates.schedulers(kind["optimizer"])), None)
        count = getattr(scheduler, "_step_count", None)
        period = getattr(scheduler, "T_max", None)
        return piece("rate", self._scheduler_at or known.at, deep=known.deep, falls=known.falls,
                     first=known.first, last=known.last, top=known.top,
                     steps=known.steps, zero=known.zero, low=known.low, low_at=known.low_at, turns=known.turns,
                     scheduler=type(scheduler).__name__ if scheduler is not None else None,
                     scheduled=count - 1 if isinstance(count, int) else None, epochs=self._epochs,
                     first_epoch=self._first_epoch, period=period if isinstance(period, (int, float)) else None,
                     also=[one for one in (made, known.at) if one], **kind)

    def _update(self, optimizer, known, kind, made, group):
        kept = known.kept
        wholes = [one["whole"] for one in kept if one["whole"]]
        shrink = [one["whole"] / one["passed"] for one in kept if one["passed"] and not one["scaled"]]
        decay = group.get("weight_decay")
        decoupled = bool(group.get("decoupled_weight_decay")) or "AdamW" in type(optimizer).__name__
        eps = group.get("eps")
        betas = group.get("betas")
        betas = betas if isinstance(betas, (tuple, list)) and len(betas) == 2 and all(
            isinstance(one, float) for one in betas) else (None, None)
        meant = sum(one["meant"] for one in kept)
        return piece("update", known.at, steps=len(kept), rate=known.last, top=known.top,
                     passed=_median(one["passed"] for one in kept), gradient=_median(wholes), shrink=_median(shrink),
                     shrink_most=max(shrink, default=None), alike=max(wholes) / min(wholes) if wholes else None,
                     relative=_median(one["moved"] / one["weight"] for one in kept if one["weight"]),
                     relative_late=_median(one["moved"] / one["weight"] for one in kept[len(kept) // 2:]
                                           if one["weight"]),
                     decay=_median(one["decay"] / one["gradient"] for one in kept if one["gradient"]),
                     decay_early=_median(one["decay"] / one["gradient"] for one in kept[:8] if one["gradient"]),
                     decay_step=_median(one["rate"] * one["decay"] / one["moved"] for one in kept
                                        if one["moved"] and one["rate"]),
                     weight_decay=float(decay) if isinstance(decay, (int, float)) else None, decoupled=decoupled,
                     stuck=sum(one["stuck"] for one in kept) / meant if meant else None,
                     half=_median(one["half"] for one in kept), beta1=betas[0], beta2=betas[1],
                     eps=float(eps) if isinstance(eps, (int, float)) and eps else None,
                     element=_median(one["gradient"] / math.sqrt(one["count"]) for one in kept if one["count"]),
                     weight_first=kept[0]["weight"], weight_last=kept[-1]["weight"],
                     also=[made] if made else [], **kind)


def _gradients(optimizer):
    return [one.grad for one in itertools.islice(parameters_of(optimizer), 4 * _MOST_PARAMETERS)
            if one.grad is not None]


def _part(tensor):
    """The first elements, or None where they cannot be read."""
    if not isinstance(tensor, torch.Tensor):
        return None
    try:
        if type(tensor) in values.PLAIN and tensor.device.type == "cpu" and tensor.layout is torch.strided and \
                tensor.dtype in (torch.float32, torch.float64):
            return tensor.detach().reshape(-1)[:_MOST_ELEMENTS]  # the usual case: cheaper
        found = values.readable(tensor)
        return found.reshape(-1)[:_MOST_ELEMENTS] if found.is_floating_point() else None
    except (values.NoValue, RuntimeError):
        return None


def _joined(parts):
    """A copy of all parts in one tensor, of float32 or wider."""
    widest = torch.float64 if any(part.dtype == torch.float64 for part in parts) else torch.float32
    return torch.cat([part.to(parts[0].device, widest) for part in parts])


def _norm(tensors):
    """The norm of all parts together, as a number."""
    parts = [part for part in map(_part, tensors) if part is not None and part.numel()]
    return float(torch.linalg.vector_norm(_joined(parts))) if parts else 0.0


def _median(numbers):
    found = sorted(one for one in numbers if one is not None and math.isfinite(one))
    return found[len(found) // 2] if found else None


def _factor(call):
    """By what a number was multiplied; None: it was not."""
    if call.name not in ("mul", "div", "truediv", "true_divide", "imul", "mul_", "multiply") or len(call.args) != 2:
        return None
    numbers = [one for one in call.args if isinstance(one, (int, float)) and not isinstance(one, bool)]
    if len(numbers) != 1 or not numbers[0]:
        return None
    return float(numbers[0]) if "mul" in call.name else 1.0 / float(numbers[0])
