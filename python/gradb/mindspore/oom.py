# SPDX-License-Identifier: MIT
"""Allocations that fail: the run stops there, with the operator, what holds the memory, and what would fit.

    agent oom [on | off]     on: operators are watched, and failing allocations stop the run
    agent oom-report         of the last one that failed in this step"""
import collections
import re
import weakref

from mindspore import Tensor

from .. import _lib, fitting
from .. import memory as kinds
from . import commands, memory, stack
from .guard import guarded

_OWN_WORD = "__gradb_oom__"
_KERNEL = re.compile(r"kernel name: (?:\d+_)?([^\s,]+)")
_MAX_STEPS = 64  # whose forward passes are remembered
_PHASES = {_lib.FORWARD: "forward", _lib.BACKWARD: "backward", _lib.OPTIMIZER: "optimizer"}


def is_oom(error):
    """Whether an exception says that memory is short."""
    return isinstance(error, MemoryError) or isinstance(error, RuntimeError) and fitting.says_so(str(error))


class Failed:
    """An allocation that failed, see fitting.batch."""

    def __init__(self, agent, error, name, args, node, asked):
        looking = agent.looking
        self.error = stack.in_a_line(error)  # not the exception, which would keep its frames alive
        self.step = agent.steps.step
        self.asked = asked or fitting.asked(str(error))
        self.phase = "optimizer" if agent.hooks.optimizing else _PHASES.get(agent.steps.phase, "forward")
        if looking is not None and looking.goes_back():
            self.phase = "backward"
        self.node = node
        self.name = name or _kernel(error)
        self.place = stack.raised_at(error.__traceback__) or stack.spot(stack.frames(3))
        self.shapes = ["%s (%s)" % (str(arg.dtype).lower(), ", ".join(map(str, arg.shape))) for arg in args[:8]
                       if isinstance(arg, Tensor)]
        self.batch = looking.batch if looking is not None else 0
        self.held = self.floor = None


    def like(self, rehearsed):
        """Takes over where it happened from the rehearsal of the same call, or None. Returns itself."""
        if rehearsed is not None and self.node is None and (rehearsed.step, rehearsed.asked) == (self.step, self.asked):
            self.node, self.name, self.place = rehearsed.node, rehearsed.name, rehearsed.place
            self.phase, self.shapes, self.batch = rehearsed.phase, rehearsed.shapes, rehearsed.batch
        return self


class Ooms:
    """on: failing allocations stop the run; last: the last one."""

    def __init__(self, agent):
        self.agent = agent
        self.on = False
        self.last = None
        self._rehearsed = None  # the last one in a rehearsal
        self._makers = {}  # id(tensor) -> (weak reference, Node)
        self._steps = collections.deque(maxlen=_MAX_STEPS)  # (step, forward bytes, batch)

    def step_ended(self, looked):
        """A step whose operators were watched has ended."""
        if self.on:
            for number, outputs in looked.outputs.items():
                for tensor in outputs:
                    if tensor is not None:
                        self._note(tensor, self.agent.graph.by_id.get(number))
        if looked.made_forward and looked.batch:
            self._steps.append((self.agent.steps.step, looked.made_forward, looked.batch))

    def _note(self, tensor, node):
        makers, key = self._makers, id(tensor)

        def gone(reference):
            if makers.get(key, (None,))[0] is reference:
                del makers[key]
        makers[key] = weakref.ref(tensor, gone), node

    def maker_of(self, tensor):
        """The Node whose output a tensor of an earlier observed step is, or None."""
        found = self._makers.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    @guarded
    def failed(self, error, name="", args=(), node=None, asked=0):
        """An exception was noticed: stops the run where it says that memory is short, once per exception. asked: bytes
        of the outputs of the operator, where they are known."""
        if not is_oom(error):
            return
        if not getattr(error, _OWN_WORD, False):
            _mark(error)
            if not name and self.agent.looking is not None and self.agent.looking.goes_back():
                name = self.agent.looking.next_back() or ""
            failed, looking = Failed(self.agent, error, name, args, node, asked), self.agent.looking
            if looking is not None and looking.rehearses:
                self._rehearsed = failed  # the training itself may have enough
                return
            self.last = failed.like(self._rehearsed)
            if self.on:
                self.agent.exceptions.stop_at(error, failed.node, self.words())

    def words(self):
        """The last one, in one line."""
        last = self.last
        return "out of memory in %s: %s%s%s (%s)" % (
            last.phase,
            fitting.size(last.asked) + " asked for by" if last.asked is not None else "an allocation failed in",
            " " + (last.name or "the program"), " (%s)" % last.place if last.place else "", last.error)

    def peak_record(self):
        """What is known of the peak within a step."""
        if not self._steps:
            return {"note": "MindSpore does not show its memory within a step; `catch oom` counts the outputs "
                            "of forward passes"}
        step, size, batch = self._steps[-1]
        return {"note": "MindSpore does not show it; the forward pass of step %d made outputs of %s at a batch of %d"
                        % (step, fitting.size(size), batch)}

    def report(self):
        """See _report."""
        agent, last = self.agent, self.last
        if last is None or last.step != agent.steps.step:
            return {}
        items = list(memory.census(agent).items.values())
        last.held = sum(item.bytes for item in items)
        last.floor = sum(item.bytes for item in items if item.kind in kinds.STAY)
        gradients = sum(item.bytes for item in items if item.kind == kinds.WEIGHTS)
        measured = [(size, gradients, batch) for _, size, batch in self._steps]
        reply = memory.report(agent, False)
        reply["oom"] = {"error": last.error, "asked": last.asked, "node": last.name, "where": last.place,
                        "phase": last.phase, "step": last.step, "shapes": last.shapes, "batch": last.batch}
        reply["fit"] = fitting.batch(measured, last, items)
        reply["checkpoints"] = fitting.checkpoints(items, agent.parameters.paths(), {}, agent.graph.by_id.values())
        return reply


def _kernel(error):
    """What MindSpore calls the operator of a compiled graph that failed; "": it does not say."""
    found = _KERNEL.search(str(error))
    return "the kernel " + found.group(1) if found is not None else ""


def _mark(error):
    try:
        setattr(error, _OWN_WORD, True)
    except AttributeError:  # it takes no attribute: it will be reported again
        pass


def _command(agent, args, _node):
    wanted = commands.switch_of("oom", args)
    if wanted is not None:
        agent.ooms.on = wanted
    return {"oom": "on" if agent.ooms.on else "off"}


def _report(agent, _args, _node):
    return agent.ooms.report()


commands.register("oom", _command, "stop where an allocation fails, and watch operators: on, off", "[on | off]")
commands.register("oom-report", _report, "what failed, who holds the memory, and what would fit")
