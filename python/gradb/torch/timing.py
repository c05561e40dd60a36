# SPDX-License-Identifier: MIT
"""Where the time of a step goes: ../clock.py and, in some steps when asked for, the time of each operator.

On an accelerator each operator of a measured step is waited for. The sections of other steps are the times of the
thread that launches the work."""
import contextlib

import torch
from torch.utils.data import IterableDataset

from .. import clock, native
from ..clock import BACKWARD, DATA, FORWARD, GAP, OPTIMIZER  # noqa: F401: for others
from . import collectives, commands, devices, reducer, stack
from .guard import guarded

_NOTE = ("On %s the operators of a measured step are waited for, one by one; the parts of other steps are the times "
         "of launching.")


class Timing(clock.Reports, native.base("Clock", clock.Clock)):
    """on: the operators of this step are measured; waits: each one is waited for, as it runs on _device; away: seconds
    inside libgradb so far; has_data: a DataLoader was used; _left: when the last hook of a backward pass ended; _took:
    seconds of the operator that has just run, negative: none has."""

    def __init__(self, agent):
        super().__init__(agent)
        self._device = None
        self._began = 0.0       # when the first backward pass of the step began
        self._tail = None       # seconds of it, after the last leaf
        self._ready = []        # (tensor, seconds) of leaves, in the order in which they were ready
        self._batches = [0, 0]  # that were asked for; of those, how many were not ready
        self._loader = None     # {...} of the last DataLoader
        self.collectives = collectives.Collectives(agent, self)

    def data_begins(self):
        """A DataLoader is asked for a batch."""
        self.has_data = True
        return self.turn(DATA)

    def step_begins(self, connected):
        """Decides whether the step is measured."""
        if not connected:
            self.sampling.want(False)  # a debugger that connects later says what it wants
        if self.collectives.step_begins(self.sampling.wanted):
            self._tell_facts()
        self.on = connected and self.sampling.begins(self.agent.steps.step, self.now())
        self._device = devices.used() if self.on else None
        self.waits = self._device is not None

    def step_ended(self, told):
        """The step is over: reports its times where `told`, and begins the next step's."""
        self.turn(GAP)
        measured, self.on = self.on, False
        if measured:
            self.collectives.measured_step_ended()
        operators = self.take_operators() if measured else ()
        if told:
            self.tell_times(operators)
            if measured:
                self._tell_facts()
        self.restart()
        self._tail, self._ready = None, []

    # ---- facts ----

    @guarded
    def _tell_facts(self):
        self.tell_facts()

    def facts(self):
        """See Reports."""
        device = devices.used()
        facts = {"framework": "PyTorch " + torch.__version__, "device": device.name if device is not None else "cpu",
                 "waits": self._waits.facts(self.sampling.measured + 1)}
        if self._tail is not None:
            facts["tail"] = self._tail
        if device is not None:
            facts["note"] = _NOTE % ("CUDA" if device.name == "cuda" else device.name)
        if self._loader is not None:
            facts["loader"] = {**self._loader, "requests": self._batches[0], "empty": self._batches[1]}
        counted = self.collectives.facts()
        if counted:
            facts["collectives"] = counted
        found = reducer.facts(self._ready)
        if found:
            facts["reducer"] = found
        return facts

    @guarded
    def batch_asked(self, iterator):
        """A batch is asked for while operators are to be measured."""
        self._batches[0] += 1
        self._batches[1] += not _has_batch(iterator)
        if self.on or self._loader is None:
            self._loader = {"kind": "DataLoader", "workers": getattr(iterator, "_num_workers", 0),
                            "pinned": bool(getattr(iterator, "_pin_memory", False)),
                            "stream": isinstance(getattr(iterator, "_dataset", None), IterableDataset),
                            "persistent": bool(getattr(iterator, "_persistent_workers", False)),
                            "place": _place()}
            prefetch = getattr(iterator, "_prefetch_factor", None)
            if prefetch is not None:
                self._loader["prefetch"] = prefetch

    # ---- operators, while `on` ----

    @contextlib.contextmanager
    def apart(self):
        """A node is reported inside that is not the operator that has just run."""
        took, self._took = self._took, -1.0
        try:
            yield
        finally:
            self._took = took

    def took(self, began, result=None):
        """An operator has run since then."""
        if self.waits and _is_on_device(result):
            self._device.wait()
        self._took = self.now() - began

    @guarded
    def waited(self, name, began):
        """The program has waited for a value since then."""
        seconds = self.now() - began
        place = "" if self._is_loading() else _place()
        if place:
            self._waits.add(name.strip("_"), place, seconds)

    def _is_loading(self):
        """Whether a DataLoader is at work in this thread: it may read the values of its samples."""
        section = self.turn(GAP)
        self.turn(section)
        return section == DATA

    def pass_begins(self):
        """A backward pass begins: the time until its first hook is the first node's."""
        self._left = self.now()
        if self.on and self._tail is None:
            self._began = self._left

    def pass_ended(self):
        """A backward pass has ended."""
        if not self.on:
            return
        self._took = -1.0
        leaves = self.take_leaves()
        if leaves:
            self._tail = max(0.0, self.now() - leaves[-1][1])
            self._ready = [(leaf, max(0.0, when - self._began)) for leaf, when in leaves]

    def hook_begins(self, own):
        """A node of a backward pass has run: it took the time since the previous hook."""
        if self.waits:
            self._device.wait()
        self._took = self.now() - self._left
        if self.agent.native is None and own.variable is not None:
            self.leaf_ran(own.variable)

    def hook_ended(self):
        """The next node's time begins."""
        self._left = self.now()


def _place():
    return stack.spot(stack.shown(stack.frames(3)))


def _is_on_device(result):
    if isinstance(result, torch.Tensor):
        return devices.of(result) is not None
    return isinstance(result, (tuple, list)) and any(isinstance(item, torch.Tensor) and devices.of(item) is not None
                                                     for item in result)


def _has_batch(iterator):
    """Whether a batch is ready when it is asked for. One without workers loads it then."""
    queue = getattr(iterator, "_data_queue", None)
    if queue is None:
        return False
    known = getattr(iterator, "_task_info", {}).get(getattr(iterator, "_rcvd_idx", None), ())
    return len(known) == 2 or not queue.empty()


clock.register(commands)
