# SPDX-License-Identifier: MIT
"""Where the time of a step goes: a clock that changes section a few times per step and, when asked for, the time of
each operator. Time inside libgradb, above all while stopped, belongs to no section.

On a device that works asynchronously (CUDA) these are the times of the thread that launches the work."""
import ctypes
from time import perf_counter

from .. import _lib, native
from . import commands

GAP, DATA, FORWARD, BACKWARD, OPTIMIZER = range(5)
MAX_OPS = 64  # the slowest are reported


class _Clock:
    """The base of Timing without gradb._native."""

    def __init__(self):
        self.on = False
        self.away = 0.0
        self.has_data = False
        self._left = 0.0
        self._section = GAP
        self._since = self.now()
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


class Timing(native.base("Clock", _Clock)):
    """on: operators are measured too; away: seconds inside libgradb so far; has_data: a DataLoader was used; _left:
    when the last hook of a backward pass ended."""

    def __init__(self, agent):
        super().__init__()
        self.agent = agent
        self._times = _lib.Times()  # what is reported
        self._ops = {}        # node number -> [calls, seconds]
        self._took = 0.0      # of the operator that has just run

    def call_waiting(self, function, *args):
        """Calls a function of libgradb that may wait."""
        before = perf_counter()
        function(*args)
        self.away += perf_counter() - before

    def data_begins(self):
        """A DataLoader is asked for a batch."""
        self.has_data = True
        return self.turn(DATA)

    def step_ended(self, told):
        """The step is over: reports its times where `told`, and begins the next step's."""
        self.turn(GAP)
        if told:
            self._tell()
        self.restart()
        self._ops.clear()

    def _tell(self):
        times = self._times
        times.total, times.data, times.forward, times.backward, times.optimizer, times.gap = self.times()
        if self._ops or times.op_count:
            self._put_operators(times)
        self.agent.library.gradb_timing(self.agent.handle, ctypes.byref(times))

    def _put_operators(self, times):
        slowest = sorted(self._ops.items(), key=lambda item: -item[1][1])[:MAX_OPS]
        times.ops = (_lib.OpTime * len(slowest))(*[_lib.OpTime(number, calls, seconds)
                                                   for number, (calls, seconds) in slowest])
        times.op_count = len(slowest)

    # ---- operators, while `on` ----

    def took(self, seconds):
        """Notes how long the operator that has just run took."""
        self._took = seconds

    def pass_begins(self):
        """A backward pass begins: the time until its first hook is the first node's."""
        self._left = self.now()

    def hook_begins(self):
        """A node of a backward pass has run: it took the time since the previous hook."""
        self._took = self.now() - self._left

    def hook_ended(self):
        """The next node's time begins."""
        self._left = self.now()

    def ran(self, number):
        """The measured operator is this node."""
        entry = self._ops.get(number)
        if entry is None:
            self._ops[number] = [1, self._took]
        else:
            entry[0] += 1
            entry[1] += self._took


def _command(agent, args, _node):
    word = args.strip()
    if word not in ("", "on", "off"):
        raise commands.CommandError("timing is 'on' or 'off', not '%s'" % word)
    if word:
        agent.timing.on = word == "on"
    return {"operators": agent.timing.on}


commands.register("timing", _command, "measure the time of each operator: on or off", "[on | off]")
