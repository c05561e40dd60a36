# SPDX-License-Identifier: MIT
"""Where the time of a step goes: a clock that is turned a few times a step, and, when asked for, the time of
each operator. What is spent inside libgradb, standing at a stop above all, is nobody's time.

On a device that works on its own (CUDA) these are the times of the thread that launches the work.
"""
import ctypes
from time import perf_counter

from .. import _lib, native
from . import commands

GAP, DATA, FORWARD, BACKWARD, OPTIMIZER = range(5)
MAX_OPS = 64  # the slowest are told


class _Clock:
    """What gradb._native has for it."""

    def __init__(self):
        self.on = False
        self.away = 0.0
        self.has_data = False
        self._left = 0.0
        self._section = GAP
        self._since = self.now()
        self.restart()

    def now(self):
        """Seconds on a clock that stands while the training does."""
        return perf_counter() - self.away

    def turn(self, section):
        """What runs from now on is of that section. Returns the one it was."""
        now = perf_counter() - self.away
        before = self._section
        self._spent[before] += now - self._since
        self._since = now
        self._section = section
        self._known[section] = True
        return before

    def times(self):
        """Of the step: total, data, forward, backward, optimizer, gap; negative where it had none such."""
        spent = [time if known else -1.0 for time, known in zip(self._spent, self._known)]
        return (sum(self._spent), self._spent[DATA] if self.has_data else -1.0, *spent[FORWARD:], spent[GAP])

    def restart(self):
        """The next step's times begin."""
        self._spent = [0.0] * 5
        self._known = [True] + [False] * 4  # sections that this step has had


class Timing(native.base("Clock", _Clock)):
    """on: operators are measured, too; away: seconds spent inside libgradb since the start; has_data: a DataLoader
    was seen; _left: when the last hook of a backward pass was left."""

    def __init__(self, agent):
        super().__init__()
        self.agent = agent
        self._times = _lib.Times()  # what is told
        self._ops = {}        # node number -> [calls, seconds]
        self._took = 0.0      # of the operator that has just run

    def apart(self, function, *args):
        """Calls a function of libgradb that may stand."""
        before = perf_counter()
        function(*args)
        self.away += perf_counter() - before

    def data_begins(self):
        """A DataLoader is asked for a batch."""
        self.has_data = True
        return self.turn(DATA)

    def step_ended(self, told):
        """The step is over: its times go to the debugger when `told`, and the next one's begin."""
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
        """The operator that has just run took so long."""
        self._took = seconds

    def pass_begins(self):
        """A backward pass begins: the time up to its first hook is the first node's."""
        self._left = self.now()

    def hook_begins(self):
        """A node of a backward pass has run: since the hook before."""
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
