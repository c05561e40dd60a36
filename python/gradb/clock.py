# SPDX-License-Identifier: MIT
"""Where the time of a step goes, for the agents of all frameworks: a clock that changes section a few times per step.
Time inside libgradb, above all while stopped, belongs to no section."""
import contextlib
import ctypes
import json
import os
from time import perf_counter

from . import _lib, sampling
from .commands import switch_of

GAP, DATA, FORWARD, BACKWARD, OPTIMIZER, COMPILED = range(6)  # the last one only in Python


class Clock:
    """The sections of the running step."""

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

    @contextlib.contextmanager
    def stopped(self):
        """What runs inside is not part of the step."""
        before, kept = self.now(), (self._spent[:], self._known[:], self._section, self._since)
        try:
            yield
        finally:
            self.away = perf_counter() - before
            self._spent, self._known, self._section, self._since = kept

    def times(self):
        """(total, data, forward, backward, optimizer, gap) of the step; negative for a section that it has not had."""
        spent = [time if known else -1.0 for time, known in zip(self._spent, self._known)]
        return (sum(self._spent), self._spent[DATA] if self.has_data else -1.0, *spent[FORWARD:COMPILED], spent[GAP])

    def restart(self):
        """Begins the times of the next step."""
        self._spent = [0.0] * 6
        self._known = [True] + [False] * 5  # the step has had this section

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


class Reports:
    """What Timing of each framework adds to a Clock: which steps are measured, and what is reported. sampling: which
    steps are measured."""

    def __init__(self, agent):
        super().__init__()
        self.agent = agent
        self.sampling = sampling.Sampling()
        self._waits = sampling.Waits()
        self._times = _lib.Times()  # what is reported

    def call_waiting(self, function, *args):
        """Calls a function of libgradb that may wait."""
        before = perf_counter()
        function(*args)
        self.away += perf_counter() - before

    def tell_times(self, operators=()):
        """Reports the times of the step."""
        times = self._times
        times.total, times.data, times.forward, times.backward, times.optimizer, times.gap = self.times()
        times.op_count = len(operators)
        if operators:
            times.ops = (_lib.OpTime * len(operators))(*[_lib.OpTime(*operator) for operator in operators])
        self.agent.library.gradb_timing(self.agent.handle, ctypes.byref(times))

    def tell_facts(self):
        """Reports what is known about the times, after those of the step."""
        tell = getattr(self.agent.library, "gradb_timing_facts", None)
        if tell is not None:
            with self.agent.own_moment():
                facts = {"step": self.agent.steps.step, "processors": len(os.sched_getaffinity(0)), **self.facts()}
            tell(self.agent.handle, _lib.text(json.dumps(facts, allow_nan=False)))

    def facts(self):
        """Those of the framework, for docs/protocol.md's TimingFacts."""
        raise NotImplementedError


def command(agent, args, _node):
    """The command `timing` of an agent."""
    wanted = switch_of("timing", args)
    if wanted is not None:
        agent.timing.sampling.want(wanted)
    return {"operators": agent.timing.sampling.wanted}


def register(table):
    """Adds that command to a framework's."""
    table.register("timing", command, "measure operators, in a few of the next steps: on or off", "[on | off]")
