# SPDX-License-Identifier: MIT
"""The order of backward(), zero_grad() and step()."""
import itertools
import weakref

import torch

from .. import values
from ..swapping import Ref
from . import Watcher, here, piece
from .lines import all_lines, only_line

_SAMPLE = 4   # parameters of an optimizer whose gradients are examined
_FIRST = 1024  # elements of a gradient that are examined before all others
_UNCALLED = r"\.backward\s*$"  # without parentheses
_RESULTS = 16  # numbers whose making is remembered: one of them becomes the loss


class _Of:
    """What is known of one optimizer."""

    def __init__(self):
        self.steps = self.passes = self.looked = 0
        self.since = 0        # passes since it stepped
        self.lines = set()    # where those passes began
        self.zeroed_in = 0    # zero_grad() between two passes, since it stepped
        self.zeros = 0        # calls of its zero_grad()
        self.used = []        # (parameter, gradient, its version) that it stepped with, weak references
        self.left = []        # sampled parameters whose gradients were not 0 after the last pass
        self.zeroed_at = {}   # its zero_grad(), since the last pass
        self.zeroed_any = {}  # the last zero_grad() that was seen
        self.stepped_at = self.lost_at = self.again_at = {}
        self.lost = self.again = self.none = self.several = self.several_zeroed = 0
        self.most = self.untouched = 0
        self.before = 0       # passes, when it began to step
        self.closure = False  # passes run inside its step
        self.run = 0          # passes whose gradients it still has to step with
        self.pending = []     # (parameter, version of its gradient) after the last of them
        self.longest = 0      # run, when it stepped
        self.dropped = self.dropped_passes = 0  # runs that were zeroed, and their passes
        self.dropping_at = {}  # zero_grad() during a run
        self.dropped_at = {}
        self.uncalled = []    # the line of a backward() without parentheses


class Order(Watcher):
    """Looks at a few gradients after backward(), and when the optimizer steps."""

    def __init__(self, observation):
        super().__init__(observation)
        self._known = weakref.WeakKeyDictionary()  # optimizer -> _Of
        self._made = []           # (weak reference to a tensor of one element, its operator, where)
        self._losses = self._leaves = 0
        self._leaf = {}
        self._loss_at = {}
        self._other_at = {}
        self._mean = None

    def _of(self, optimizer):
        known = self._known.get(optimizer)
        if known is None:
            known = self._known[optimizer] = _Of()
        return known

    def _optimizers(self):
        optimizers = self.agent.optimizers
        return [one for one in map(optimizers.by_name, optimizers.names()) if one is not None]

    def operator(self, call):
        """Remembers how numbers are made: one of them may become the loss."""
        result = call.result
        if isinstance(result, torch.Tensor) and result.numel() == 1 and result.dim() < 2 \
                and not self.agent.in_backward and not self.agent.steps.is_updating():
            self._made.append((Ref(result), call.name, here()))
            del self._made[:-_RESULTS]

    def loss(self, tensor):
        """A pass begins."""
        self._losses += 1
        for known in list(self._known.values()):
            self._look_at_run(known)
        if self.observation.observes:
            self._loss_at = here()
            self._look_at_loss(tensor)

    def _look_at_run(self, known):
        """Notes that the gradients of passes are gone before the optimizer has stepped with them."""
        held = [(reference(), version) for reference, version in known.pending]
        if known.run and held and all(one is not None and (one.grad is None or values.state_of(one.grad) != version
                                                           and _is_zero(one.grad)) for one, version in held):
            known.dropped += 1
            known.dropped_passes += known.run
            known.dropped_at = known.dropped_at or known.dropping_at or (all_lines(r"\.zero_grad\(") + [{}])[0]
            known.run = 0

    def _look_at_loss(self, tensor):
        if not isinstance(tensor, torch.Tensor):
            return
        made = next((one for one in reversed(self._made) if one[0]() is tensor), None)
        if tensor.grad_fn is None and tensor.requires_grad and not isinstance(tensor, torch.nn.Parameter) \
                and tensor.numel() == 1:
            self._leaves += 1
            self._leaf = dict((made and made[2]) or self._loss_at, made=made[1] if made else None)
        self._mean = tensor.numel() == 1 and _is_mean(tensor.grad_fn)

    def passed(self):
        """A pass has ended."""
        line = (self._loss_at.get("file"), self._loss_at.get("line"))
        for optimizer in self._optimizers():
            known = self._of(optimizer)
            known.since += 1
            known.passes += 1
            known.zeroed_at = {}
            known.run += 1
            held = _with_gradients(optimizer)
            known.pending = [(Ref(one), values.state_of(one.grad)) for one in held]
            if self.observation.observes:
                known.lines.add(line)
                known.left = [(Ref(one), values.state_of(one.grad)) for one in held if not _is_zero(one.grad)]

    def zeroed(self, optimizer):
        """zero_grad() was called."""
        known = self._of(optimizer)
        known.zeros += 1
        if known.since:
            known.zeroed_in += 1
        if known.run:
            known.dropping_at = here()
        if self.observation.observes:
            known.zeroed_at = known.zeroed_any = here()

    def before_step(self, optimizer):
        """It is about to step."""
        known = self._of(optimizer)
        known.steps += 1
        known.before = known.passes
        known.longest = max(known.longest, known.run)
        if not self.observation.observes:
            return
        known.stepped_at = here()
        known.looked += 1
        held = [one for group in optimizer.param_groups for one in group["params"] if one.requires_grad]
        if all(one.grad is None for one in held):
            known.none += 1
            known.uncalled = known.uncalled or all_lines(_UNCALLED)[:1]
        left = [(reference(), version) for reference, version in known.left]
        if left and known.since and all(one is not None and (one.grad is None or _is_zero(one.grad))
                                        for one, _ in left):
            known.lost += 1
            known.lost_at = (known.zeroed_at or only_line(r"\.zero_grad\(", self._loss_at, known.stepped_at)
                             or only_line(r"\.zero_grad\(") or known.stepped_at)
        if not known.since and not known.closure and known.passes and known.used and all(
                one is not None and one.grad is not None and grad() is one.grad and values.state_of(one.grad) == version
                for one, grad, version in ((one(), grad, version) for one, grad, version in known.used)):
            known.again += 1
            known.again_at = known.stepped_at
        if known.since > 1 and len(known.lines) == 1:
            known.several += 1
            known.most = max(known.most, known.since)
            known.several_zeroed += known.zeroed_in >= known.since - 1
            known.untouched += bool(left) and all(one is not None and one.grad is not None and
                                                  values.state_of(one.grad) == version for one, version in left)

    def after_step(self, optimizer):
        """It has stepped."""
        known = self._of(optimizer)
        known.closure = known.closure or known.passes > known.before
        known.since = known.zeroed_in = known.run = 0
        known.lines = set()
        known.used = [(Ref(one), Ref(one.grad), values.state_of(one.grad))
                      for one in _with_gradients(optimizer)]

    def evidence(self):
        """A piece for each optimizer, one for the loss, and one for each optimizer whose gradients pile up."""
        found = []
        if self._losses:
            found.append(piece("loss-root", self._leaf or self._loss_at, passes=self._losses, leaves=self._leaves,
                               made=self._leaf.get("made") if self._leaf else None))
        names = self.agent.optimizers
        if self._losses and not any(of.steps for of in self._known.values()):
            found.extend(piece("never-stepped", names.made_at(names.by_name(name)) or self._loss_at, optimizer=name,
                               passes=self._losses, also=[one for one in (self._loss_at, self._other_at) if one])
                         for name in names.names()[:1] if names.by_name(name) is not None)
        for optimizer, known in list(self._known.items()):
            erased = known.zeroed_any if known.several_zeroed else {}
            found.append(piece("order", known.lost_at or erased or known.again_at or known.stepped_at,
                               optimizer=names.name_of(optimizer), steps=known.steps, looked=known.looked,
                               lost=known.lost, again=known.again, none=known.none, several=known.several,
                               several_zeroed=known.several_zeroed, passes=known.passes, most=known.most,
                               untouched=known.untouched, optimizers=len(self._known), mean=self._mean,
                               adapts=_adapts(optimizer), also=None if known.passes else known.uncalled))
            if known.dropped:
                found.append(piece("dropped-passes", known.dropped_at or known.stepped_at, times=known.dropped,
                                   optimizer=names.name_of(optimizer), passes=known.dropped_passes, steps=known.steps,
                                   longest=known.longest, total=known.passes, optimizers=len(self._known),
                                   also=[known.stepped_at] if known.stepped_at else []))
        for clearing in self.agent.clearing:
            optimizer = clearing.optimizer()
            if clearing.since and optimizer is not None:
                known = self._of(optimizer)
                others = [names.name_of(one) for one, of in self._known.items() if one is not optimizer
                          and of.zeros and not of.steps]
                found.append(piece("pile-up", known.stepped_at or self._loss_at, optimizer=names.name_of(optimizer),
                                   since=clearing.since, zeros=known.zeros, steps=known.steps, parameter=clearing.name,
                                   other=others[0] if others else None, also=[self._loss_at] if self._loss_at else []))
        return found


def _is_mean(grad_fn):
    """Whether a loss is a mean, by its last operator: a sum is meant to grow with the batch."""
    name = type(grad_fn).__name__
    return name.startswith(("MeanBackward", "MseLossBackward", "NllLossBackward", "BinaryCrossEntropy", "L1Loss",
                            "SmoothL1Loss", "HuberLoss"))


def _adapts(optimizer):
    """Whether the size of its updates does not depend on that of the gradients."""
    return any("betas" in group for group in optimizer.param_groups)


def _with_gradients(optimizer):
    """The first parameters that have a gradient."""
    return list(itertools.islice((one for group in optimizer.param_groups for one in group["params"]
                                  if one.grad is not None), _SAMPLE))


def _is_zero(gradient):
    try:
        flat = values.readable(gradient).reshape(-1)
        return not bool(flat[:_FIRST].any()) and not bool(flat.any())
    except (values.NoValue, RuntimeError):
        return False
