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


class Timing(native.base("Timing")):
    """on: operators are measured, too."""

    def __init__(self, agent):
        self.agent = agent
        self.on = False
        self.away = 0.0       # seconds spent inside libgradb since the start
        self._spent = [0.0] * 5
        self._known = [True] + [False] * 4  # sections that this step has had
        self._section = GAP
        self._since = self.now()
        self._has_data = False  # a DataLoader was seen
        self._times = _lib.Times()  # what is told
        self._ops = {}        # node number -> [calls, seconds]
        self._took = 0.0      # of the operator that has just run
        self._left = 0.0      # when the last hook of a backward pass was left

    def now(self):
        """Seconds on a clock that stands while the training does."""
        return perf_counter() - self.away

    def apart(self, function, *args):
        """Calls a function of libgradb that may stand."""
        before = perf_counter()
        function(*args)
        self.away += perf_counter() - before

    def turn(self, section):
        """What runs from now on is of that section. Returns the one it was."""
        now = perf_counter() - self.away
        before = self._section
        self._spent[before] += now - self._since
        self._since = now
        self._section = section
        self._known[section] = True
        return before

    def data_begins(self):
        """A DataLoader is asked for a batch."""
        self._has_data = True
        return self.turn(DATA)

    def step_ended(self, told):
        """The step is over: its times go to the debugger when `told`, and the next one's begin."""
        self.turn(GAP)
        if told:
            self._tell()
        self._spent = [0.0] * 5
        self._known = [True] + [False] * 4
        self._ops.clear()

    def _tell(self):
        spent, known, times = self._spent, self._known, self._times
        times.total = sum(spent)
        times.gap = spent[GAP]
        times.data = spent[DATA] if self._has_data else -1.0
        times.forward = spent[FORWARD] if known[FORWARD] else -1.0
        times.backward = spent[BACKWARD] if known[BACKWARD] else -1.0
        times.optimizer = spent[OPTIMIZER] if known[OPTIMIZER] else -1.0
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
