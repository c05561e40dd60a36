# SPDX-License-Identifier: MIT
"""Where the time of a step goes: a clock that changes section a few times per step and, in some steps when asked for,
the time of each operator. Time inside libgradb, above all while stopped, belongs to no section.

On CUDA each operator of a measured step is waited for. The sections of other steps are the times of the thread that
launches the work."""
import contextlib
import ctypes
import json
import os
from time import perf_counter

import torch
from torch.utils.data import IterableDataset

from .. import _lib, native, sampling
from . import commands, reducer, stack
from .guard import guarded

GAP, DATA, FORWARD, BACKWARD, OPTIMIZER = range(5)
_NOTE = ("On CUDA the operators of a measured step are waited for, one by one; the parts of other steps are the times "
         "of launching.")


class _Clock:
    """The base of Timing without gradb._native."""

    def __init__(self):
        self.on = False
        self.waits = False
        self.away = 0.0
        self.has_data = False
        self._left = 0.0
        self._took = -1.0
        self._section = GAP
        self._since = self.now()
        self._ops = {}     # node number -> [calls, seconds]
        self._leaves = []
        self.restart()

    def now(self):
        """Seconds on a clock that does not run while the training is stopped."""
        return perf_counter() - self.away

    def turn(self, section):
        """Sets the section that runs from now on. Returns the previous one."""
        now = perf_counter() - self.away
        before = self._section
        self._spent[before] += now - self._since
        self._since = now
        self._section = section
        self._known[section] = True
        return before

    def times(self):
        """(total, data, forward, backward, optimizer, gap) of the step; negative for a section that it has not had."""
        spent = [time if known else -1.0 for time, known in zip(self._spent, self._known)]
        return (sum(self._spent), self._spent[DATA] if self.has_data else -1.0, *spent[FORWARD:], spent[GAP])

    def restart(self):
        """Begins the times of the next step."""
        self._spent = [0.0] * 5
        self._known = [True] + [False] * 4  # the step has had this section

    def ran(self, number):
        """The measured operator is this node."""
        if self._took >= 0:
            entry = self._ops.setdefault(number, [0, 0.0])
            entry[0] += 1
            entry[1] += self._took
            self._took = -1.0

    def take_operators(self):
        """[(number of the node, calls, seconds)]; none are left."""
        found, self._ops = self._ops, {}
        return [(number, calls, seconds) for number, (calls, seconds) in found.items()]

    def leaf_ran(self, leaf):
        """A leaf of a backward pass is ready."""
        self._leaves.append((leaf, self.now()))

    def take_leaves(self):
        """[(leaf, when it was ready)]; none are left."""
        found, self._leaves = self._leaves, []
        return found


class Timing(native.base("Clock", _Clock)):
    """on: the operators of this step are measured; waits: each one is waited for, as it runs on a device; away: seconds
    inside libgradb so far; has_data: a DataLoader was used; _left: when the last hook of a backward pass ended; _took:
    seconds of the operator that has just run, negative: none has; sampling: which steps are measured."""

    def __init__(self, agent):
        super().__init__()
        self.agent = agent
        self.sampling = sampling.Sampling()
        self._waits = sampling.Waits()
        self._times = _lib.Times()  # what is reported
        self._began = 0.0       # when the first backward pass of the step began
        self._tail = None       # seconds of it, after the last leaf
        self._ready = []        # (tensor, seconds) of leaves, in the order in which they were ready
        self._batches = [0, 0]  # that were asked for; of those, how many were not ready
        self._loader = None     # {...} of the last DataLoader

    def call_waiting(self, function, *args):
        """Calls a function of libgradb that may wait."""
        before = perf_counter()
        function(*args)
        self.away += perf_counter() - before

    def data_begins(self):
        """A DataLoader is asked for a batch."""
        self.has_data = True
        return self.turn(DATA)

    def step_begins(self, connected):
        """Decides whether the step is measured."""
        self.on = connected and self.sampling.begins(self.agent.steps.step, self.now())
        self.waits = self.on and torch.cuda.is_initialized()

    def step_ended(self, told):
        """The step is over: reports its times where `told`, and begins the next step's."""
        self.turn(GAP)
        measured, self.on = self.on, False
        operators = self.take_operators() if measured else ()
        if told:
            self._tell(operators)
            if measured:
                self._tell_facts()
        self.restart()
        self._tail, self._ready = None, []

    def _tell(self, operators):
        times = self._times
        times.total, times.data, times.forward, times.backward, times.optimizer, times.gap = self.times()
        times.ops = (_lib.OpTime * len(operators))(*[_lib.OpTime(*operator) for operator in operators])
        times.op_count = len(operators)
        self.agent.library.gradb_timing(self.agent.handle, ctypes.byref(times))

    # ---- facts ----

    @guarded
    def _tell_facts(self):
        tell = getattr(self.agent.library, "gradb_timing_facts", None)
        if tell is not None:
            with self.agent.own_moment():
                facts = self._facts()
            tell(self.agent.handle, _lib.text(json.dumps(facts, allow_nan=False)))

    def _facts(self):
        cuda = torch.cuda.is_initialized()
        facts = {"framework": "PyTorch " + torch.__version__, "device": "cuda" if cuda else "cpu",
                 "processors": len(os.sched_getaffinity(0)), "step": self.agent.steps.step,
                 "waits": self._waits.facts(self.sampling.measured + 1)}
        if self._tail is not None:
            facts["tail"] = self._tail
        if cuda:
            facts["note"] = _NOTE
        if self._loader is not None:
            facts["loader"] = {**self._loader, "requests": self._batches[0], "empty": self._batches[1]}
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
            torch.cuda.current_stream().synchronize()
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
            torch.cuda.current_stream().synchronize()
        self._took = self.now() - self._left
        if self.agent.native is None and own.variable is not None:
            self.leaf_ran(own.variable)

    def hook_ended(self):
        """The next node's time begins."""
        self._left = self.now()


def _place():
    return stack.spot(stack.shown(stack.frames(3)))


def _is_on_device(result):
    return isinstance(result, torch.Tensor) and result.is_cuda or isinstance(result, (tuple, list)) \
        and any(isinstance(item, torch.Tensor) and item.is_cuda for item in result)


def _has_batch(iterator):
    """Whether a batch is ready when it is asked for. One without workers loads it then."""
    queue = getattr(iterator, "_data_queue", None)
    if queue is None:
        return False
    known = getattr(iterator, "_task_info", {}).get(getattr(iterator, "_rcvd_idx", None), ())
    return len(known) == 2 or not queue.empty()


def _command(agent, args, _node):
    word = args.strip()
    if word not in ("", "on", "off"):
        raise commands.CommandError("timing is 'on' or 'off', not '%s'" % word)
    if word:
        agent.timing.sampling.want(word == "on")
    return {"operators": agent.timing.sampling.wanted}


commands.register("timing", _command, "measure operators, in a few of the next steps: on or off", "[on | off]")
