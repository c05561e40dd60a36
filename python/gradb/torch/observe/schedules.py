# SPDX-License-Identifier: MIT
"""Learning rates over the whole training: what a schedule was made for and how far it came, what a plateau is measured
by, the rates of parameter groups, and rates that were restored. Also clipping that is given no gradients."""
import functools
import math
import weakref

import torch
from torch.optim import lr_scheduler

from . import Watcher, here, piece
from .lines import all_lines, call_of

_MOST_METRICS = 512
_MOST_OPTIMIZERS = 64
_LARGEST_SET = 20000  # examples of an evaluation of which a metric may be a share
_WARM_UP = r"(?i)warm_?up"
_WRITES_RATE = r"\[.lr.\]\s*=[^=]"


class _Of:
    """What is known of one optimizer."""

    def __init__(self):
        self.steps = self.last = 0  # its steps; the number of the last one, of those of all optimizers
        self.rates = None           # of its groups, in the last step
        self.first = self.top = None  # largest rate of a group: in the first step, and of all
        self.falls = self.together = self.changed = 0  # steps: the rate is lower than before; of all groups; different
        self.restored = None        # rates in the first step after the last state was loaded
        self.loaded = None          # that state's rates
        self.counts = {}            # id of a scheduler -> how often it was stepped, at the last step
        self.facts = {}             # id of a scheduler -> what it was made for; it may be gone at the end
        self.lines = []             # of the user's: that write a rate, or that make its scheduler
        self.name = self.made = None


class _Metric:
    """What one ReduceLROnPlateau was given."""

    def __init__(self):
        self.values = []
        self.falls = 0
        self.where = {}


class Schedules(Watcher):
    """Follows the rates of all optimizers."""

    def __init__(self, observation):
        super().__init__(observation)
        self._known = weakref.WeakKeyDictionary()  # optimizer -> _Of
        self._all = []                             # of them, also of optimizers that are gone
        self._metrics = weakref.WeakKeyDictionary()  # scheduler -> _Metric
        self._steps = 0
        self._clips = self._empty = self._passes = 0
        self._clip = {}
        self._step_lines = weakref.WeakKeyDictionary()  # scheduler -> where it is stepped
        self._put = []  # (owner, name, original, wrapper)
        self._replace(lr_scheduler.ReduceLROnPlateau, "step", self._plateau)
        clipping = torch.nn.utils.clip_grad
        if hasattr(clipping, "_get_total_norm"):
            self._replace(clipping, "_get_total_norm", self._norm)
        else:
            self._replace(torch.nn.utils, "clip_grad_norm_", self._norm)

    def _replace(self, owner, name, wrap):
        original = getattr(owner, name)
        wrapper = wrap(original)
        setattr(owner, name, wrapper)
        self._put.append((owner, name, original, wrapper))

    def closes(self):
        """Puts everything back."""
        for owner, name, original, wrapper in self._put:
            if getattr(owner, name) is wrapper:
                setattr(owner, name, original)
        self._put = []

    # ---- calls that are followed ----

    def _plateau(self, original):
        @functools.wraps(original)
        def step(scheduler, metrics, *args, **kwargs):
            before = _rate_of(scheduler)
            result = original(scheduler, metrics, *args, **kwargs)
            try:
                if self.observation.on and self.agent.is_training_thread():
                    self.observation.tell_one(self, "note_metric", scheduler, metrics, before)
            except Exception:  # never the training's problem
                pass
            return result
        return step

    def note_metric(self, scheduler, metrics, before):
        """A plateau was given a metric."""
        known = self._metrics.get(scheduler)
        if known is None:
            known = self._metrics[scheduler] = _Metric()
        known.where = here()
        value = float(metrics)
        if len(known.values) < _MOST_METRICS and math.isfinite(value):
            known.values.append(value)
        known.falls += _rate_of(scheduler) < before

    def _norm(self, original):
        @functools.wraps(original)
        def norm(tensors, *args, **kwargs):
            taken = tensors
            try:
                if self.observation.on and not isinstance(tensors, torch.Tensor) and self.agent.is_training_thread():
                    taken = list(tensors)
                    gradients = [one for one in taken if one.grad is not None] if original.__name__[0] != "_" else taken
                    self.observation.tell_one(self, "note_clip", len(gradients))
            except Exception:  # never the training's problem
                pass
            return original(taken, *args, **kwargs)
        return norm

    def note_clip(self, gradients):
        """Clipping was given so many gradients."""
        if self._passes:
            self._clips += 1
            if not gradients:
                self._empty += 1
                self._clip = self._clip or here()

    def passed(self):
        """A pass has ended."""
        self._passes += 1

    # ---- steps ----

    def before_step(self, optimizer):
        """Notes the rates."""
        known = self._known.get(optimizer)
        if known is None:
            known = self._known[optimizer] = _Of()
            known.name, known.made = self.agent.optimizers.name_of(optimizer), self.agent.optimizers.made_at(optimizer)
            self._all = (self._all + [known])[-_MOST_OPTIMIZERS:]
        self._passes = 0
        self._steps += 1
        known.steps += 1
        known.last = self._steps
        rates = [group.get("lr") for group in optimizer.param_groups]
        if not all(isinstance(one, (int, float)) for one in rates) or not rates:
            return
        loaded = self.agent.optimizers.loaded_rates.get(optimizer)
        schedulers = [scheduler for scheduler, _ in self.agent.rates.of(optimizer)]
        if loaded is not known.loaded:
            known.loaded, known.restored = loaded, rates
            known.lines = all_lines(r"\b%s\(|load_state_dict\(.*opt" % "|".join(
                type(one).__name__ for one in schedulers)) if schedulers else []
        elif known.rates is None and len(rates) > 1 and not schedulers:
            known.lines = all_lines(_WRITES_RATE)
        largest = max(rates)
        known.falls += known.rates is not None and largest < max(known.rates)
        known.changed += known.rates is not None and rates != known.rates
        known.together += min(rates) == largest
        known.first = largest if known.first is None else known.first
        known.top = largest if known.top is None else max(known.top, largest)
        known.rates = rates
        for scheduler in schedulers:
            known.counts[id(scheduler)] = _count(scheduler)
            if self.observation.observes:
                if scheduler not in self._step_lines:
                    self._step_lines[scheduler] = call_of(scheduler, "step")
                known.facts[id(scheduler)] = self._facts(optimizer, scheduler)

    # ---- evidence ----

    def evidence(self):
        """For each optimizer what its schedule did."""
        found = []
        for known in self._all:
            found += [piece("schedule", scheduled=known.counts.get(key), steps=known.steps, first=known.first,
                            last=max(known.rates), top=known.top, falls=known.falls, changed=known.changed,
                            ended=self.observation.ended, optimizer=known.name, **facts)
                      for key, facts in known.facts.items() if facts]
        for optimizer, known in list(self._known.items()):
            if known.rates is not None:
                for scheduler, _ in self.agent.rates.of(optimizer):
                    found += self._stopped(optimizer, known, scheduler)
                found += self._groups(optimizer, known) + self._restored(optimizer, known)
        found += self._plateaus()
        if self._empty:
            found.append(piece("clip-empty", self._clip, clippings=self._clips, empty=self._empty))
        return found

    def _facts(self, optimizer, scheduler):
        """What a schedule was made for."""
        peaks = getattr(scheduler, "max_lrs", None) or [group.get("max_lr", group.get("initial_lr"))
                                                        for group in optimizer.param_groups]
        if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau) or not all(
                isinstance(one, (int, float)) for one in peaks):
            return {}
        length = next((value for value in (getattr(scheduler, key, None) for key in (
            "total_steps", "T_max", "total_iters")) if isinstance(value, (int, float)) and value > 1), None)
        made, stepped = self.agent.optimizers.made_at(optimizer), self._step_lines.get(scheduler) or {}
        named = all_lines(_WARM_UP)
        facts = {"where": stepped or made, "scheduler": type(scheduler).__name__, "peak": max(peaks),
                 "also": (named if len(named) < 3 else []) + ([made] if made else [])}
        return dict(facts, length=length) if length is not None else facts

    def _stopped(self, optimizer, known, scheduler):
        """A scheduler is stepped on after its optimizer's last step, while an optimizer without one steps."""
        more = _count(scheduler) - known.counts.get(id(scheduler), 0)
        others = [(one, of) for one, of in self._known.items()
                  if one is not optimizer and of.last > known.last and not self.agent.rates.of(one)]
        if more < 2 or not others:
            return []
        other, of = max(others, key=lambda pair: pair[1].steps)
        names = self.agent.optimizers
        line = self._step_lines.get(scheduler) or {}
        return [piece("scheduler-elsewhere", names.made_at(other), optimizer=names.name_of(optimizer),
                      other=names.name_of(other), scheduler=type(scheduler).__name__, scheduled=more, since=known.last,
                      steps=self._steps - known.last, stopped=True, also=[one for one in (line, known.made) if one])]

    def _groups(self, optimizer, known):
        """Groups that were made with different rates, and have the same one in each step."""
        rates = [one for one in self.agent.optimizers.made_rates.get(optimizer, ()) if one is not None]
        if len(rates) < 2 or min(rates) == max(rates) or known.together < known.steps:
            return []
        schedulers = self.agent.rates.of(optimizer)
        return [piece("group-rates", known.made, low=min(rates), high=max(rates), groups=len(rates), steps=known.steps,
                      last=known.rates[0], scheduler=type(schedulers[0][0]).__name__ if schedulers else None,
                      optimizer=known.name, also=known.lines[:2])]

    def _restored(self, optimizer, known):
        """A state was loaded, and the first step after it had another rate."""
        initial = optimizer.param_groups[0].get("initial_lr")
        schedulers = self.agent.rates.of(optimizer)
        if not known.loaded or known.loaded[0] is None or not schedulers or not isinstance(initial, (int, float)):
            return []
        places = known.lines[-3:] or [known.made]
        return [piece("restored-rate", places[0], loaded=known.loaded[0], stepped=known.restored[0], steps=known.steps,
                      initial=float(initial), scheduler=type(schedulers[-1][0]).__name__, optimizer=known.name,
                      also=places[1:])]

    def _plateaus(self):
        """What plateaus were given."""
        found = []
        for scheduler, known in list(self._metrics.items()):
            values = known.values
            if len(values) < 3:
                continue
            rises = sum(second > first for first, second in zip(values, values[1:]))
            falls = sum(second < first for first, second in zip(values, values[1:]))
            epochs = getattr(scheduler, "last_epoch", None)
            patience = getattr(scheduler, "patience", None)
            rounds = epochs // (patience + 1) if isinstance(epochs, int) and isinstance(patience, int) else None
            third = max(1, len(values) // 3)
            found.append(piece("plateau", known.where, scheduler="ReduceLROnPlateau", mode=scheduler.mode,
                               metrics=len(values), rises=rises, sinks=falls, first=values[0], last=values[-1],
                               early=sum(values[:third]) / third, late=sum(values[-third:]) / third,
                               smallest=min(values), largest=max(values), share_of=_share_of(values),
                               lowered=known.falls, rounds=rounds))
        return found


def _count(scheduler):
    """How often a scheduler was stepped; its constructor does it once."""
    count = getattr(scheduler, "_step_count", None)
    if isinstance(count, int) and count > 0:
        return count - 1
    epoch = getattr(scheduler, "last_epoch", 0)
    return max(0, epoch) if isinstance(epoch, int) else 0


def _rate_of(scheduler):
    groups = getattr(getattr(scheduler, "optimizer", None), "param_groups", None) or [{}]
    rate = groups[0].get("lr", 0.0)
    return float(rate) if isinstance(rate, (int, float)) else 0.0


def _share_of(values):
    """The smallest set of examples of which all values are shares (or percent), such as accuracies; None: there is none
    that says anything."""
    different = sorted(set(values))
    if len(different) < 4 or different[0] < 0 or different[-1] > 100:
        return None
    for scale in (1.0, 100.0):
        if different[-1] > scale:
            continue
        for size in range(4, _LARGEST_SET):
            if all(abs(value / scale * size - round(value / scale * size)) < 1e-6 * size + 1e-9
                   for value in different) and 2e-6 * size < 0.02:
                return size
    return None
