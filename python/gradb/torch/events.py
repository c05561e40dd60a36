# SPDX-License-Identifier: MIT
"""Metrics that gradb finds by itself: loss, learning rate, epoch, batch.

    loss        what backward() was called on since the previous step, summed: the step's gradient belongs to it
    lr, lr_1    the learning rate of each parameter group of the main optimizer in this step
    epoch       the number of the training's epoch, see loader
    batch       the number of the batch in that epoch, from 1
    micro_batch backward passes of the step, once a step has had several

They are read only while a debugger is connected, and reported at the end of the step. A number that is still on its way
from a device is not waited for: it is reported at the end of a later step, as of its own one, but before anything is
checked with it and before the training stops. A metric that the script reports itself (gradb.torch.log) is not looked
for."""
import sys

import torch

from .. import native
from . import devices, values
from .guard import guarded
from .loader import Loader

MAX_GROUPS = 16  # of an optimizer, whose learning rates are reported
_MOST_LATE = 256  # numbers on their way: then the oldest is waited for
_BACKWARD = getattr(torch.autograd.backward, "__code__", None)


class Events(native.base("Events")):
    """The metrics of the running step. The callers are guarded, except of those methods that the script calls."""

    def __init__(self, agent):
        self.agent = agent
        self.loader = Loader(agent)
        self._losses = []   # of the passes since an optimizer stepped: numbers, or on their way from a device
        self._passes = 0    # how many passes since then
        self._several = False  # a step of several passes was seen
        self._numbers = {}  # name -> number, one on its way, or a list; to be reported at the end of the step
        self._late = []     # (name, the same, the step that it belongs to) of those that were put off
        self._ordered = set()  # names of those that may be put off
        self._told = set()  # names that the script reports

    def _catch_up(self):
        """Takes over what the native module has noted in this step."""
        if self.agent.native is not None:
            self.agent.native.give_numbers()

    # ---- the loss ----

    def backward_begins(self, tensors, gradients):
        """An outermost backward pass into the parameters begins at `tensors`."""
        self._catch_up()
        self._passes += 1
        self.loader.used()
        if "loss" in self._told or not self.agent.connected():
            return
        loss, gradient = self.agent.scaler.unscaled(alone(tensors)), alone(gradients)
        if not _is_number(loss):
            return
        weight = self._read(gradient) if _is_number(gradient) and not _is_made(gradient) else 1
        if isinstance(weight, devices.Later):
            self._losses.append(_Perhaps(self._read(loss), weight))
        elif weight == 1:
            self._losses.append(self._read(loss))

    def _read(self, value):
        """The number; of a tensor on a device, the number on its way, to be read when the step is over."""
        if not self.agent.watching_now or not isinstance(value, torch.Tensor):
            return _number_of(value)
        with self.agent.own_moment():
            return _number_of(value)

    def optimizer_begins(self, optimizer, name=""):
        """Before an optimizer's step: notes the learning rates that it uses. name: as in optimizer_ended."""
        self._catch_up()
        own = "lr_" + name if name else "lr"
        if self.agent.connected():
            for index, group in enumerate(optimizer.param_groups[:MAX_GROUPS]):
                rate = group.get("lr")
                if isinstance(rate, (int, float)) or _is_number(rate):
                    self._numbers["%s_%d" % (own, index) if index else own] = self._read(rate)

    def optimizer_ended(self, name):
        """An optimizer has stepped, or was skipped; the passes since the previous step belong to it. name: "" for the
        main one, else its name."""
        self._catch_up()
        losses, self._losses = self._losses, []
        passes, self._passes = self._passes, 0
        if losses:
            self._numbers["loss_" + name if name else "loss"] = losses
        if not name:
            self._several = self._several or passes > 1
            if self._several:
                self._numbers["micro_batch"] = passes

    def has_passes(self):
        """Whether there was a backward pass since an optimizer stepped."""
        return self.passes() > 0

    def passes(self):
        """How many backward passes of this step have begun."""
        self._catch_up()
        return self._passes

    # ---- reporting ----

    def note(self, name, value):
        """Notes a metric to be reported at the end of this step."""
        self._numbers[name] = value

    @guarded
    def log(self, name, value):
        """The script reports a metric: a Python number, or a tensor of one element. Between two steps it belongs to the
        one that has ended."""
        self._catch_up()
        if self.agent.connected():
            number, step = self._read(value), self.agent.steps.belongs_to()
            if step == self.agent.steps.step:
                self._numbers[name] = number
            elif isinstance(number, devices.Later) and name in self._ordered:
                self.agent.source.hear_of_looks()
                self._late.append((name, number, step))
            else:  # the first of its name at once: the debugger cannot ask for a name that it does not know
                self._ordered.add(name)
                self.agent.happenings.number(name, _value(number), step)
        self._told.add(name)

    def put_off(self, name, number):
        """A number of this step may be on its way yet: it is reported when it is there. The first of its name at once:
        numbers are shown in the order in which their names were reported."""
        self.agent.source.hear_of_looks()
        if name in self._ordered:
            self._late.append((name, number, self.agent.steps.step))
        else:
            self._ordered.add(name)
            value = _value(number)
            if value is not None:
                self.agent.library.gradb_scalar(self.agent.handle, _encode(name), value)

    @guarded
    def give_late(self):
        """At the end of a step, when everything else is reported: reports what was put off, as far as it is there."""
        self._give(self.agent.wants_numbers())

    def settle(self):
        """Reports everything that was put off: waits for it."""
        self._give(True)

    def _give(self, waits):
        late = self._late
        given = 0 if self.agent.connected() else len(late)
        while given < len(late) and (waits or len(late) - given > _MOST_LATE or _is_there(late[given][1])):
            name, number, step = late[given]
            value = _value(number)
            if value is not None:
                self.agent.happenings.number(name, value, step)
            given += 1
        del late[:given]

    def happened(self, kind, text):
        """Reports an event: "skipped-step", "loss-scale", "checkpoint"."""
        self.agent.library.gradb_event(self.agent.handle, kind.encode(), _encode(text), 0)

    def step_ended(self, told):
        """The step is over: reports its metrics where `told`."""
        self._catch_up()
        numbers, self._numbers = self._numbers, {}
        if told:
            numbers.update(self.loader.numbers())
            for name, number in numbers.items():
                if _is_plain(number):
                    self.agent.library.gradb_scalar(self.agent.handle, _encode(name), _value(number))
                else:
                    self.put_off(name, number)
        if self._late:
            self.give_late()


class _Perhaps(devices.Later):
    """A number that a backward pass began at: a loss, if the gradient that the pass was given is 1. That one is on its
    way from a device."""
    __slots__ = ("_number", "_gradient")

    def __init__(self, number, gradient):
        self._number = number
        self._gradient = gradient

    def is_there(self):
        """As of Later, for both."""
        return devices.are_there((self._number, self._gradient))

    def is_loss(self):
        """Waits for the gradient."""
        return float(self._gradient) == 1

    def __float__(self):
        return float(self._number)


def _is_made(gradient):
    """Whether PyTorch has made the gradient of a pass, because the program gave none; then it is 1. Looks only at one
    on a device, which must be copied to be read; of others it says no."""
    frame = None if gradient.is_cpu else sys._getframe(1)
    while frame is not None and frame.f_code is not _BACKWARD:
        frame = frame.f_back
    return frame is not None and frame.f_locals.get("grad_tensors", ()) is None


def _is_plain(number):
    """Whether nothing of it is on a device."""
    return all(isinstance(one, (float, int)) for one in (number if isinstance(number, list) else (number,)))


def _is_there(number):
    """Whether nothing of it is on its way."""
    return devices.are_there(number if isinstance(number, list) else (number,))


def _value(number):
    """float; of a list the sum, or None where nothing in it is a loss. Waits for what is on its way."""
    if not isinstance(number, list):
        return float(number)
    losses = [float(one) for one in number if not isinstance(one, _Perhaps) or one.is_loss()]
    return sum(losses) if losses else None


def _is_number(value):
    """Whether it is a plain tensor of one element, whose value can be read without involving anybody else."""
    return (type(value) in values.PLAIN and value.numel() == 1 and (value.is_cpu or devices.of(value) is not None)
            and value.layout is torch.strided and not value.is_complex())


def alone(given):
    """What backward() was given, unwrapped where it is one thing."""
    return given[0] if isinstance(given, (tuple, list)) and len(given) == 1 else given


def _number_of(value):
    """The number, or devices.Later."""
    if not isinstance(value, torch.Tensor):
        return float(value)
    undispatched = torch._C._DisableTorchDispatch()  # while it exists, no mode of the program sees the read
    try:
        return devices.number(value)
    finally:
        del undispatched


def _encode(text):
    return text.encode("utf-8", "backslashreplace")
