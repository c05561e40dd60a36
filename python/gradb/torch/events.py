# SPDX-License-Identifier: MIT
"""Numbers of the training that are known without a word of the user: loss, learning rate, epoch, batch.

    loss        what backward() was called on since the step before, summed up: what the step's gradient is of
    lr, lr_1    the learning rate of each group of the main optimizer, as this step used it
    epoch       how often iteration over the DataLoader has begun that the step's batch came from
    batch       which of that epoch's batches it was, from 1
    micro_batch backward passes of the step, once there is a step of several

They are read only while a debugger is connected, and told at the end of the step. A number that the program
tells by itself (gradb.torch.log) is not looked for.
"""
import weakref

import torch
from torch.utils.data import DataLoader
from torch.utils.data import dataloader as _dataloader

from .. import native
from . import timing, values
from .guard import guarded

MAX_GROUPS = 16  # of an optimizer, whose learning rates are told


class Events(native.base("Events")):
    """The numbers of the running step. Their methods are called by what is guarded, but for those that the program
    calls."""

    def __init__(self, agent):
        self.agent = agent
        self.loader = Loader(agent)
        self._losses = []   # of the passes since an optimizer stepped: numbers, or tensors on a device
        self._passes = 0    # likewise, how many passes
        self._several = False  # a step of several passes was seen
        self._numbers = {}  # name -> number or tensor, to be told at the step's end
        self._told = set()  # names that the program tells

    def _catch_up(self):
        """The native module may have noted something of this step, in its own place."""
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
        loss = self.agent.scaler.unscaled(_alone(tensors))
        if _is_number(loss) and not self._is_weighted(gradients):
            self._losses.append(self._read(loss))

    def _is_weighted(self, gradients):
        """backward() was given a gradient other than 1. On a device it is not looked at: that would wait."""
        gradient = _alone(gradients)
        return _is_number(gradient) and gradient.is_cpu and self._read(gradient) != 1

    def _read(self, value):
        """A number now; of a tensor on a device a copy, to be read when the step is over."""
        if not self.agent.looking or not isinstance(value, torch.Tensor):
            return _number_of(value)
        with self.agent.unseen():
            return _number_of(value)

    def optimizer_begins(self, optimizer):
        """Before the main optimizer's step: the learning rates that it uses."""
        self._catch_up()
        if self.agent.connected():
            for index, group in enumerate(optimizer.param_groups[:MAX_GROUPS]):
                rate = group.get("lr")
                if isinstance(rate, (int, float)) or _is_number(rate):
                    self._numbers["lr_%d" % index if index else "lr"] = self._read(rate)

    def optimizer_ended(self, name):
        """An optimizer has stepped, or was skipped; the passes since the one before were for it. name: "" for
        the main one, else what tells it from that."""
        self._catch_up()
        losses, self._losses = self._losses, []
        passes, self._passes = self._passes, 0
        if losses:
            self._numbers["loss_" + name if name else "loss"] = losses
        if not name:
            self._several = self._several or passes > 1
            if self._several:
                self._numbers["micro_batch"] = passes

    # ---- telling ----

    def note(self, name, value):
        """A number to be told at the end of this step."""
        self._numbers[name] = value

    @guarded
    def log(self, name, value):
        """The program tells a number: a Python number, or a tensor of one element."""
        self._catch_up()
        if self.agent.connected():
            self._numbers[name] = self._read(value)
        self._told.add(name)

    def happened(self, kind, text):
        """An event: "skipped-step", "loss-scale", "checkpoint"."""
        self.agent.library.gradb_event(self.agent.handle, kind.encode(), _encode(text), 0)

    def step_ended(self, told):
        """The step is over: its numbers go to the debugger when `told`."""
        self._catch_up()
        numbers, self._numbers = self._numbers, {}
        if not told:
            return
        numbers.update(self.loader.numbers())
        tell, handle = self.agent.library.gradb_scalar, self.agent.handle
        for name, value in numbers.items():
            tell(handle, _encode(name), sum(map(float, value)) if isinstance(value, list) else float(value))


class Loader(native.base("Loader")):
    """Which epoch and batch of which DataLoader it is, and the time spent waiting for batches. loads: the
    training's thread is in one."""

    def __init__(self, agent):
        self.agent = agent
        self.loads = False
        self._wrapped = []   # (class, name, original, wrapper)
        self._loaders = weakref.WeakKeyDictionary()    # iterator -> [epoch, batch] of its loader
        self._counts = weakref.WeakKeyDictionary()     # loader -> [epoch, batch]
        self._last = None    # [epoch, batch] of the loader that gave a batch last
        self._used = None    # (epoch, batch) that the step's last pass was on

    def install(self):
        """Wraps the iteration of DataLoader."""
        iterate, following = DataLoader.__iter__, _dataloader._BaseDataLoaderIter.__next__
        loader = self

        def __iter__(data_loader):
            before = loader.loads
            loader.loads = before or loader.agent.is_training_thread()
            try:
                iterator = iterate(data_loader)  # which draws a seed
            finally:
                loader.loads = before
            loader._began(data_loader, iterator)
            return iterator

        def __next__(iterator):
            if loader.agent.dead or not loader.agent.is_training_thread():
                return following(iterator)
            section = loader._fetch()
            try:
                batch = following(iterator)
            finally:
                loader._fetched(section)
            loader._got(iterator)
            return batch

        for kind, name, original, wrapper in ((DataLoader, "__iter__", iterate, __iter__),
                                              (_dataloader._BaseDataLoaderIter, "__next__", following, __next__)):
            setattr(kind, name, wrapper)
            self._wrapped.append((kind, name, original, wrapper))

    def remove(self):
        """Takes the wrappers off, unless somebody wrapped after us."""
        for kind, name, original, wrapper in self._wrapped:
            if vars(kind).get(name) is wrapper:
                setattr(kind, name, original)
        self._wrapped = []

    @guarded
    def _began(self, data_loader, iterator):
        counts = self._counts.setdefault(data_loader, [0, 0])
        counts[0] += 1
        counts[1] = 0
        self._loaders[iterator] = counts

    @guarded
    def _fetch(self):
        self.agent.look_if_asked()
        self.loads = True
        return self.agent.timing.data_begins()

    @guarded
    def _fetched(self, section):
        """A forward that was interrupted by this begins anew: what ran before it was an evaluation."""
        self.loads = section == timing.DATA  # one that another one asks
        self.agent.timing.turn(section if section != timing.FORWARD else timing.GAP)
        if section == timing.FORWARD:
            self.agent.steps.forward = False

    @guarded
    def _got(self, iterator):
        self._last = self._loaders.get(iterator)
        if self._last is not None:
            self._last[1] += 1

    def used(self):
        """A backward pass begins: the batch that came last is the one it is of."""
        if self._last is not None:
            self._used = tuple(self._last)

    def numbers(self):
        """{"epoch": ..., "batch": ...}, or nothing when no DataLoader is used."""
        return {} if self._used is None else {"epoch": self._used[0], "batch": self._used[1]}


def _is_number(value):
    """A plain tensor of one element, whose value may be read without asking anybody else."""
    return (type(value) in values.PLAIN and value.numel() == 1 and (value.is_cpu or value.is_cuda)
            and value.layout is torch.strided and not value.is_complex())


def _alone(given):
    """What backward() was given, where it was one thing."""
    return given[0] if isinstance(given, (tuple, list)) and len(given) == 1 else given


def _number_of(value):
    if not isinstance(value, torch.Tensor):
        return float(value)
    undispatched = torch._C._DisableTorchDispatch()  # while it lives: a mode of the program's must not see it
    try:
        return value.item() if value.is_cpu else value.detach().clone()
    finally:
        del undispatched


def _encode(text):
    return text.encode("utf-8", "backslashreplace")
