# SPDX-License-Identifier: MIT
"""Collectives that the program calls itself, such as torch.distributed.all_reduce: how often, on how many bytes, and
how long its thread waits in them. DistributedDataParallel's are not among them: C++ calls those (reducer.py).

All of torch.distributed's functions call methods of ProcessGroup, and wait for the Work that these return. Both are
replaced while operators are to be measured, so other runs pay nothing. Steps whose operators are measured do not count:
measuring delays a rank, and the others wait for it."""
import sys
import weakref

import torch

from .. import wrappers
from . import devices, stack
from .guard import guarded

MOST = 64   # kinds and places
_FIRST = 2  # step that counts
_FEW = 8    # steps
_KINDS = {  # method of ProcessGroup -> (function of torch.distributed, which argument is sent)
    "allreduce": ("all_reduce", 0), "allreduce_coalesced": ("all_reduce_coalesced", 0), "broadcast": ("broadcast", 0),
    "reduce": ("reduce", 0), "allgather": ("all_gather", 1), "_allgather_base": ("all_gather_into_tensor", 1),
    "all_gather_single": ("all_gather_into_tensor", 1), "allgather_coalesced": ("all_gather_coalesced", 1),
    "allgather_into_tensor_coalesced": ("all_gather_into_tensor", 1),
    "all_gather_single_coalesced": ("all_gather_into_tensor", 1), "gather": ("gather", 1), "scatter": ("scatter", 0),
    "reduce_scatter": ("reduce_scatter", 1), "_reduce_scatter_base": ("reduce_scatter_tensor", 1),
    "reduce_scatter_single": ("reduce_scatter_tensor", 1),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter_tensor", 1),
    "reduce_scatter_single_coalesced": ("reduce_scatter_tensor", 1), "alltoall": ("all_to_all", 1),
    "alltoall_base": ("all_to_all_single", 1), "all_to_all_single": ("all_to_all_single", 1), "send": ("send", 0),
    "recv": ("recv", 0), "recv_anysource": ("recv", 0), "barrier": ("barrier", None)}


class _Entry:
    """Of one kind, at one line of the program. seconds: its thread was in the calls, and waited for them; begun: those
    that were waited for later; ahead: the seconds that passed before that."""
    __slots__ = "calls", "bytes", "seconds", "begun", "ahead"

    def __init__(self):
        self.calls = self.bytes = self.begun = 0
        self.seconds = self.ahead = 0.0


class Collectives(wrappers.Wrappers):
    """timing: the Timing whose clock and steps count."""

    def __init__(self, agent, timing):
        super().__init__()
        self.agent = agent
        self._timing = timing
        self._entries = {}  # (kind, place, whether on a device) -> _Entry
        self._running = weakref.WeakKeyDictionary()  # Work -> (_Entry, when its call returned)
        self._first = 0     # step
        self._left_out = 0  # measured steps since then
        self._ended = 0     # the running step is over
        self._began = 0.0   # that step, by the clock of Timing
        self._since = 0.0   # the running step
        self._left_seconds = 0.0  # of measured steps
        self._next = 0      # steps after which there is something new to tell

    # ---- which steps ----

    def step_begins(self, wanted):
        """Counts from this step on, or no longer. Returns whether there is something new to tell. Steps may be left out
        of these calls, if none of them is measured."""
        wanted = wanted and self.agent.steps.step >= _FIRST
        self._since = self._timing.now()
        self._ended = 0
        if wanted != bool(self._wrapped):
            (self._begin if wanted else self.end)()
        is_new = bool(self._wrapped and self._entries) and self._steps() >= self._next
        if is_new:
            self._next = max(_FEW, 2 * self._steps())
        return is_new

    def measured_step_ended(self):
        """The step is over, and its operators were measured."""
        self._left_out += 1
        self._left_seconds += self._timing.now() - self._since
        self._ended = 1

    def _steps(self):
        return self.agent.steps.step - self._first + self._ended - self._left_out

    def most_idle(self, most):
        """How many steps, at most that many, may pass until there is something new to tell."""
        return max(1, min(most, self._next - self._steps())) if self._wrapped and self._entries else most

    def _begin(self):
        library = sys.modules.get("torch._C._distributed_c10d") or getattr(torch._C, "_distributed_c10d", None)
        group, work = getattr(library, "ProcessGroup", None), getattr(library, "Work", None)
        if group is None or work is None or not torch.distributed.is_initialized():
            return
        self._entries, self._first, self._left_out = {}, self.agent.steps.step, 0
        self._began, self._left_seconds, self._next = self._since, 0.0, _FEW
        for name, (kind, sent) in _KINDS.items():
            if name in vars(group):
                self._wrap(group, name, self._call_of(vars(group)[name], kind, sent))
        self._wrap(work, "wait", self._wait_of(vars(work)["wait"]))

    def end(self):
        """Counts no longer; what was counted stays."""
        self.remove()
        self._running.clear()

    def _counts(self):
        return not self._timing.on and self.agent.is_training_thread()

    # ---- the calls ----

    def _call_of(self, original, kind, sent):
        def call(group, *args, **kwargs):
            if not self._counts():
                return original(group, *args, **kwargs)
            began = self._timing.now()
            work = original(group, *args, **kwargs)
            self._called(kind, args[sent] if sent is not None and sent < len(args) else (), began, work)
            return work
        return call

    def _wait_of(self, original):
        def wait(work, *args, **kwargs):
            began = self._timing.now()
            result = original(work, *args, **kwargs)
            self._waited(work, began)
            return result
        return wait

    @guarded
    def _called(self, kind, sent, began, work):
        now = self._timing.now()
        size, on_device = _bytes_of(sent)
        frame = stack.user_frame(3)
        place = stack.spot((frame.f_code, frame.f_lineno)) if frame is not None else ""
        entry = self._entries.get((kind, place, on_device))
        if entry is None:
            if len(self._entries) >= MOST:
                return
            entry = self._entries[kind, place, on_device] = _Entry()
        entry.calls += 1
        entry.bytes += size
        entry.seconds += now - began
        if work is not None:
            self._running[work] = entry, self._timing.now()

    @guarded
    def _waited(self, work, began):
        entry, since = self._running.pop(work, (None, 0.0))
        if entry is not None and self._counts():
            entry.seconds += self._timing.now() - began
            if not _is_own(sys._getframe(2)):
                entry.begun += 1
                entry.ahead += began - since

    # ---- facts ----

    def facts(self):
        """For the debugger: a list, empty where nothing was counted."""
        steps, elapsed = self._steps(), self._timing.now() - self._began - self._left_seconds
        if steps < 1 or not elapsed > 0:
            return []
        return [{"kind": kind, "place": place, "device": on_device, "steps": steps, "elapsed": elapsed,
                 "calls": entry.calls, "bytes": entry.bytes, "seconds": entry.seconds, "begun": entry.begun,
                 "ahead": entry.ahead}
                for (kind, place, on_device), entry in self._entries.items()]


def _is_own(frame):
    """Whether torch.distributed itself waits, in a call that is not asynchronous."""
    while frame is not None and stack.is_ours(frame):
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__", "").startswith("torch.distributed")


def _bytes_of(sent):
    """(bytes, whether they are on a device) of a tensor, or of lists of them."""
    if isinstance(sent, torch.Tensor):
        return sent.numel() * sent.element_size(), devices.of(sent) is not None
    size, on_device = 0, False
    if isinstance(sent, (list, tuple)):
        for item in sent:
            more, there = _bytes_of(item)
            size, on_device = size + more, on_device or there
    return size, on_device
