# SPDX-License-Identifier: MIT
"""Where the time of a step goes: ../clock.py, compilations, waits for values, the dataset and, in some steps in
PyNative mode when asked for, the time of each operator.

In PyNative mode MindSpore queues operators: the sections are the times until their work was queued. Only in a measured
step each operator is waited for. What runs compiled is one section, because nothing inside is seen."""
import os
import sys

import mindspore

from .. import clock
from ..clock import BACKWARD, COMPILED, DATA, FORWARD, GAP, OPTIMIZER  # noqa: F401: for others
from . import commands, compiles, hooks, pipeline, ranks, stack, values
from .guard import guarded

_MOST_FRAMES = 24
_FEW = 8           # steps
_CALLBACKS = os.sep + os.path.join("train", "callback") + os.sep
_PASSED_OVER = _CALLBACKS, os.sep + os.path.join("common", "tensor.py")  # MindSpore's code that reads for the program
_QUEUED = ("PyNative mode queues operators: forward is the time until its own were queued; backward includes gradb's "
           "wait for the work of both. ")
_NOTES = {"compiled": "compiled is the time of calls of compiled code; operators inside are not measured one by one.",
          "mixed": _QUEUED + "Operators inside compiled code are not measured one by one.",
          "pynative": _QUEUED + "In a measured step each operator is waited for."}


class Timing(clock.Reports, clock.Clock):
    """listens: waits for values are counted in this step; on: its operators are measured."""

    def __init__(self, agent):
        super().__init__(agent)
        self.listens = False
        self.compiles = compiles.Compiles(agent)
        self.sink = None         # Model.train's dataset_sink_mode
        self._listened = 0       # steps in which waits were counted
        self._forwards = 0       # open forward passes that gradients are wanted of
        self._passes = True      # the last step had one
        self._mixed = False      # compiled code has run in one of them
        self._due = False
        self._next_facts = 0     # of those, when the facts are reported next
        self._told = ""          # the mode that was reported
        self._ran = None         # what ran in the step before that
        self._tell_compiled = getattr(agent.library, "gradb_timing_compiled", None)
        self._requests = 0       # of batches
        self._loader = None      # {...} of the last dataset
        self._iterator = None    # id of what that describes
        self._mark = 0.0, False  # of COMPILED, before the call that runs
        self._tail = None        # seconds of reducing gradients, in this step
        self._reducer = None     # {...}

    # ---- the step ----

    def begins(self):
        """The first step is about to begin."""
        self.turn(GAP)
        self.restart()

    def step_begins(self, connected):
        """Decides whether the step is measured."""
        if not connected:
            self.sampling.want(False)  # a debugger that connects later says what it wants
        self.on = self._due = connected and self._passes and self.sampling.begins(self.agent.steps.step, self.now())
        # The program reads the values of a step when the next one has begun.
        self.listens = connected and self.sampling.wanted and not self.on and self.agent.steps.step > 1

    def step_ended(self, told):
        """The step is over: reports its times where `told`, and begins the next step's."""
        self.turn(GAP)
        self._forwards = 0
        self._passes = self._known[FORWARD]
        self._listened += self.listens
        operators = self.take_operators() if self.on else ()
        self.on = self.listens = False
        if told:
            if self._known[COMPILED] and self._tell_compiled is not None:
                self._tell_compiled(self.agent.handle, self._spent[COMPILED])
            self.tell_times(operators)
            ran = self._passes, self._known[COMPILED], self._mixed
            if self._due or self.compiles.changed or self._tail is not None or ran != self._ran \
                    or self._listened > self._next_facts:
                self._ran = ran
                self._tell_facts()
        self.restart()
        self._tail, self._mixed = None, False

    @guarded
    def _tell_facts(self):
        if self._listened > self._next_facts:
            self._next_facts = max(_FEW, 2 * self._listened)
        self._told = self._mode()
        self.tell_facts()
        self.compiles.changed = False

    def _mode(self):
        if hooks.is_graph_mode():
            return "graph"
        return "jit" if self._known[COMPILED] or self._mixed else "pynative"

    def _note(self):
        return _NOTES["compiled" if self._known[COMPILED] else "mixed" if self._mixed else "pynative"]

    def facts(self):
        """See Reports."""
        device = mindspore.get_context("device_target").lower()
        facts = {"framework": "MindSpore " + mindspore.__version__, "device": device, "mode": self._told,
                 "note": self._note(), "waits": self._waits.facts(self._listened), **self.compiles.facts()}
        if self.sink is not None:
            facts["sink"] = "on" if self.sink else "off"
        if self._loader is not None:
            facts["loader"] = {**self._loader, "requests": self._requests}
        if self._tail is not None:
            facts["tail"], facts["reducer"] = self._tail, self._reducer
        return facts

    # ---- sections ----

    def section(self):
        """The one that runs."""
        return self._section

    def forward_begins(self):
        """A forward pass that gradients are wanted of begins; nested ones belong to the first."""
        self._forwards += 1
        if self._section == GAP:
            self.turn(FORWARD)

    def forward_ended(self):
        """It has ended."""
        self._forwards = max(0, self._forwards - 1)
        if self._forwards == 0 and self._section == FORWARD:
            self.turn(GAP)

    def compiled_begins(self, own):
        """Compiled code is about to run; own: a function of MindSpore's. Returns the section to turn back to."""
        self._mark = self._spent[COMPILED], self._known[COMPILED]
        if self._section == GAP:
            return self.turn(self.until_done() if own else COMPILED)
        self._mixed |= self._section == FORWARD and not own
        return self._section

    def compiled_for(self, seconds):
        """Something was compiled: that is not part of the section that runs."""
        self._spent[self._section] -= seconds
        self._spent[GAP] += seconds

    def not_trained(self):
        """The compiled call that has just returned was an evaluation's."""
        spent, known = self._mark
        self._spent[GAP] += self._spent[COMPILED] - spent
        self._spent[COMPILED], self._known[COMPILED] = spent, known

    def until_done(self):
        """The section of a moment in which gradb reads something for which MindSpore finishes what it has queued."""
        return BACKWARD if self._known[BACKWARD] and not self._known[OPTIMIZER] else self._section

    def data_begins(self, iterator):
        """A dataset that feeds the training is asked for a batch."""
        self.has_data = True
        if self.sampling.wanted:
            self._asked(iterator)
        return self.turn(DATA)

    @guarded
    def _asked(self, iterator):
        self._requests += 1
        if self._iterator != id(iterator):
            self._iterator = id(iterator)
            with self.agent.own_moment():
                self._loader = {**pipeline.facts(iterator), "place": stack.spot(stack.frames(3))}

    # ---- waits for values ----

    def reads(self, name, original, tensor, args, kwargs):
        """Calls a function that reads a tensor's value, and counts that if the program or a callback calls it."""
        reader = self._reader(name, sys._getframe(2))
        if reader is None:
            return original(tensor, *args, **kwargs)
        self.listens, began = False, self.now()
        try:
            return original(tensor, *args, **kwargs)
        finally:
            self.listens = True
            self._waits.add(*reader, self.now() - began)

    @guarded
    def _reader(self, name, frame):
        """(name, place) of what reads a value; None: neither the program nor a callback."""
        if self.agent.steps.evaluating or self._section == DATA:
            return None
        found = ""
        for _ in range(_MOST_FRAMES):
            if frame is None:
                return None
            file = frame.f_code.co_filename
            if stack.is_users(frame):
                return found or name.strip("_"), "%s:%d" % (os.path.basename(file), frame.f_lineno)
            if not found:
                owner = frame.f_locals.get("self") if _CALLBACKS in file else None
                if isinstance(owner, mindspore.Callback):
                    found = "%s.%s" % (type(owner).__name__, frame.f_code.co_name)
                elif not any(part in file for part in _PASSED_OVER):
                    return None
            frame = frame.f_back
        return None

    # ---- operators, while `on` ----

    def wait_for(self, things):
        """Waits until these tensors have been computed."""
        for thing in things:
            if isinstance(thing, (tuple, list)):
                self.wait_for(thing)
            elif isinstance(thing, mindspore.Tensor) and not getattr(thing, "has_init", False):
                values.wait_for(thing)

    def operator_begins(self, inputs):
        """An operator is about to run. What was not dispatched, but only queued, must not count for it."""
        self.wait_for(inputs)
        return self.now()

    def took(self, began, outputs):
        """The operator that began then has run."""
        if not values.is_in_host_memory():  # where it is, the addresses of its outputs were waited for
            self.wait_for(outputs)
        self._took = self.now() - began

    def hook_begins(self, outputs):
        """A node of a backward pass has run: it took the time since the previous hook."""
        self.wait_for(outputs)
        self._took = self.now() - self._left

    def hook_ended(self):
        """The next node's time begins; also that of the first one, when a pass begins."""
        self._left = self.now()

    # ---- reducing gradients ----

    def reduces(self, original, cell, args, kwargs):
        """Calls MindSpore's reducer of gradients, which begins when all of them are ready."""
        before = self.turn(BACKWARD)
        measured, began = self.on, 0.0
        try:
            if measured:
                self.wait_for(args)
                began = self.now()
            result = original(cell, *args, **kwargs)
            if measured:
                self.wait_for((result,))
                self._reduced(self.now() - began, cell)
            return result
        finally:
            self.turn(before)

    @guarded
    def _reduced(self, seconds, cell):
        self._tail = (self._tail or 0.0) + seconds
        self._reducer = {"kind": type(cell).__name__, "world_size": ranks.rank_and_size()[1]}


clock.register(commands)
