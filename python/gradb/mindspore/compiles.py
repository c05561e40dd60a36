# SPDX-License-Identifier: MIT
"""What MindSpore has compiled, when, how long that took, and why so often."""
import time
import weakref

import mindspore
from mindspore import nn

from . import hooks, stack, taps
from .guard import guarded

_MOST_SHOWN = 32
_MOST_KNOWN = 256     # functions and cells
_MOST_SIGNATURES = 64
_LATE = 2             # step: what is compiled after it should have been before


class _Function:
    """One function or cell that was compiled. shapes, constants: different ones of its arguments; objects: how many
    different objects it was."""

    def __init__(self, name):
        self.name = name
        self.count = self.late = 0
        self.seconds = 0.0
        self.place = ""
        self.shapes, self.constants = set(), set()
        self.objects, self.last = 0, None

    def add(self, step, seconds, owner, args):
        """It was compiled for these arguments."""
        self.count += 1
        self.late += step > _LATE
        self.seconds += seconds
        if len(self.shapes) < _MOST_SIGNATURES and len(self.constants) < _MOST_SIGNATURES:
            shapes, constants = [], []
            _describe(args, shapes, constants)
            self.shapes.add(tuple(shapes))
            self.constants.add(tuple(constants))
        self.objects += self.last is None or self.last() is not owner
        self.last = weakref.ref(owner)

    def cause(self):
        """Why it was compiled again, and what to do."""
        if len(self.shapes) > 1:
            return "its inputs had %d different shapes or types; pad them to a few shapes" % len(self.shapes)
        if len(self.constants) > 1:
            return "an argument that is not a tensor had %d different values; pass it as a Tensor" % len(self.constants)
        if self.objects > 1:
            return "it was another object each time; define it once, outside of the loop"
        return "its inputs had one shape, so that the reason is unknown; MindSpore's log may have it (GLOG_v=1)"


class Compiles:
    """changed: something was compiled that was not reported yet."""

    def __init__(self, agent):
        self.agent = agent
        self.changed = False
        self._seconds = 0.0
        self._count = 0
        self._functions = {}  # name -> _Function
        self._list = []       # {...} of the last ones

    def function(self, original):
        """A wrapper of the method that compiles a function where that is necessary, and returns its phase."""
        own = self

        def compile(executor, *args, **kwargs):
            known = getattr(hooks.api, "ms_compile_cache", ())
            before, began = len(known), time.perf_counter()
            phase = original(executor, *args, **kwargs)
            if len(known) > before and not own.agent.dead:
                own._compiled(executor, phase, time.perf_counter() - began, args[1:])
            return phase
        return compile

    def cell(self, original):
        """A wrapper of the method that compiles a cell where that is necessary, and returns its phase and whether it
        was."""
        own = self

        def compile(executor, called, *args, **kwargs):
            began = time.perf_counter()
            result = original(executor, called, *args, **kwargs)
            if isinstance(result, tuple) and len(result) == 2 and result[1] and not own.agent.dead:
                own._compiled(called, result[0], time.perf_counter() - began, args)
            return result
        return compile

    @guarded
    def _compiled(self, called, phase, seconds, args):
        if taps.SUFFIX in phase:
            return  # gradb's
        self.agent.timing.compiled_for(seconds)
        step, place = self.agent.steps.step, stack.spot(stack.frames(3))
        name, _ = self.agent.compiled.name_of(called)
        owner = called if isinstance(called, nn.Cell) else called.fn
        self._count += 1
        self._seconds += seconds
        self._list = self._list[1 - _MOST_SHOWN:] + [{"name": name, "step": step, "seconds": seconds, "place": place}]
        if name in self._functions or len(self._functions) < _MOST_KNOWN:
            found = self._functions.setdefault(name, _Function(name))
            found.place = place
            found.add(step, seconds, owner, args)
        self.changed = True

    def facts(self):
        """For the debugger."""
        if not self._count:
            return {}
        most = max(self._functions.values(), key=lambda found: (found.late, found.count))
        return {"compile": self._seconds, "compile_count": self._count, "compilations": self._list,
                "compiles": most.count, "compiles_late": most.late, "compiled": most.name,
                "compiled_seconds": most.seconds, "compile_place": most.place, "compile_cause": most.cause()}


def _describe(args, shapes, constants):
    for arg in args:
        if isinstance(arg, mindspore.Tensor):
            shapes.append((tuple(arg.shape), str(arg.dtype)))
        elif isinstance(arg, (tuple, list)):
            _describe(arg, shapes, constants)
        elif arg is None or isinstance(arg, (bool, int, float, str)):
            constants.append(arg)
