# SPDX-License-Identifier: MIT
"""Operators and backward passes that raise, and exceptions that end the program: the run stops there once, while all
values can still be seen."""
import re
import threading

from .. import _lib
from . import bad_index, oom, ops, stack
from .guard import guarded

_OWN_WORD = "__gradb_told__"
_LATE = "__gradb_raised__"  # (text, node, Raised or None) of an error at which the run stops if nobody catches it
# PyTorch's message about a value that was overwritten though the backward pass needs it.
_MISSED = re.compile(r"inplace operation: .*which is (output \d+) of (\w+?)(?:Backward\d*)?, is at version")
_CALLS = re.compile(r"^(?:Exception raised from |frame #0:|C\+\+ CapturedTraceback)", re.MULTILINE)
_TOLD = 800  # bytes of an exception's message; libgradb passes on some more, for the place after it
_PREFACE = "one of the variables needed for gradient computation has been modified by an inplace operation: "


class Failures:
    """Stops the run where something raises. raised: a Raised about the last operator that did; or None.
    passed: (step, text, place) of the last exception at which the run did not stop because the program may catch it; or
    None. survives: the training has continued after an exception before."""

    def __init__(self, agent, reporter):
        self.agent = agent
        self.reporter = reporter
        self.graph = reporter.graph
        self.raised = self.passed = None
        self.survives = False

    @guarded
    def operator_raised(self, operator, args, kwargs, error):
        """An operator has raised into the user's code: stops the run there."""
        agent = self.agent
        if getattr(error, _OWN_WORD, False) or not self._stops_at(error):
            return
        if type(error).__module__ == "torch.utils.checkpoint":  # this is how a recomputation ends early
            return
        with agent.own_moment():
            if not agent.steps.operator_begins():
                return
            node = self.graph.next_of(agent.modules.path() or self.reporter.outer_scope(), operator.name,
                                      agent.modules.site())
            found = []
            ops.tensors_in(args, found)
            ops.tensors_in(kwargs or {}, found)
            inputs, _ = self.reporter.inputs_of(node, found, ())
            if node.id == 0:
                self.reporter.settle(node, (), inputs, stack.frames(3, agent.thread()))
            else:
                self.graph.set_inputs(node, inputs)
            agent.live.ran_as(node.id, agent.steps.step, ())  # its earlier outputs are not of this call
            self.raised = Raised(node, agent.steps.step, describe(error), operator.name, args, kwargs or {},
                                 self.graph.producer)
            self.reporter.flush()
            if agent.ooms.failed(error, operator.name, args, kwargs, None if agent.in_backward else node,
                                 stack.shown(stack.frames(3))):
                self._stop_at(error, agent.ooms.words(), node)
                return
            there = _elsewhere(node, stack.frames(3))
            self._stop_at(error, "%s raised %s%s" % (node.name, describe(error), there), node)

    @guarded
    def backward_raised(self, error):
        """A backward pass has raised into the user's code."""
        if not getattr(error, _OWN_WORD, False) and self._stops_at(error):
            with self.agent.own_moment():
                self.raised = None  # an operator that raised before is not why
                self.reporter.flush()
                if self.agent.ooms.failed(error):
                    self._stop_at(error, self.agent.ooms.words(), self.agent.ooms.last.node)
                    return
                place = stack.raised_at(error.__traceback__)[0] or stack.shown(stack.frames(2))
                self._stop_at(error, "backward raised %s%s" % (self._overwritten(error) or describe(error),
                                                               stack.words(place)))

    @guarded
    def update_raised(self, error):
        """An allocation of an optimizer's has failed."""
        agent = self.agent
        if not getattr(error, _OWN_WORD, False) and agent.connected() and agent.ooms.failed(error):
            self._stop_at(error, agent.ooms.words(), agent.ooms.last.node)

    def _stops_at(self, error):
        agent = self.agent
        return agent.connected() and (agent.exceptions.mode != "off" or self._wants_oom(error))

    def _wants_oom(self, error):
        """Whether `catch oom` is about it."""
        return self.agent.allocations is not None and oom.is_oom(error)

    def died(self, error, node, place, args, kwargs):
        """The program is about to end by an exception, see exceptions.py. place: where it was raised; args, kwargs:
        those of the operator `node`."""
        where = stack.words(place)
        if node is not None:
            step = self.agent.steps.step
            self.agent.live.ran_as(node.id, step, ())
            self.raised = Raised(node, step, describe(error), node.operator, args, kwargs, self.graph.producer)
        self.reporter.flush()
        name = node.operator if node is not None else ""
        self.agent.ooms.failed(error, name, args, kwargs, node, place)
        self._stop(error, "the script ends with %s%s" % (describe(error), where), node)

    def knows(self, error):
        """Whether the run has stopped at this exception."""
        return getattr(error, _OWN_WORD, False)

    def stops_late(self, error):
        """The program is about to end by an exception. If an operator or a backward pass raised it or its cause and the
        run has not stopped there, stops it now and returns True."""
        late = getattr(error, _LATE, None) or getattr(error.__cause__, _LATE, None)
        if late is not None:
            text, node, self.raised = late
            self.reporter.flush()
            self._stop(error, text, node)
        return late is not None

    def _stop_at(self, error, text, node=None):
        """Stops the run where something raises. If only uncaught exceptions are wanted it stops later, but not on other
        threads than the main one: there we do not learn that an exception was not caught."""
        on_main = threading.current_thread() is threading.main_thread()
        if self.agent.exceptions.mode != "uncaught" or not on_main or self._wants_oom(error):
            self._stop(error, text, node)
            return
        step = self.agent.steps.step
        self.survives = self.survives or self.passed is not None and self.passed[0] != step
        self.passed = step, text, stack.shown(stack.frames())
        try:
            setattr(error, _LATE, (text, node, self.raised))
        except AttributeError:  # it takes no attribute: only its line will be known
            pass

    def _stop(self, error, text, node=None):
        try:
            setattr(error, _OWN_WORD, True)
        except AttributeError:  # it takes no attribute: it will be reported again
            pass
        raised = getattr(self.agent.library, "gradb_raised", None)
        if raised is not None:
            number = node.id if node is not None else 0
            self.agent.timing.call_waiting(raised, self.agent.handle, number, _lib.text(text))
        else:
            self.agent.timing.call_waiting(self.agent.library.gradb_stop, self.agent.handle, _lib.text(text))

    def _overwritten(self, error):
        """For a pass that lacks a value: says which operator of the step overwrote it. None unless only one can have.
        """
        found = _MISSED.search(str(error))
        if found is None:
            return None
        made = found.group(2).lower()
        ran = [node for node in self.graph.by_id.values() if node.step == self.agent.steps.step and node.stack]
        makers = {node.id for node in ran if node.operator.replace("_", "") == made}
        writers = [node for node in ran if node.operator.endswith("_") and node.phase == _lib.FORWARD
                   and (node.id in makers or any(edge is not None and edge[0].id in makers for edge in node.edges))]
        if len(writers) != 1:
            return None
        place = stack.shown(writers[0].stack)
        where = " (%s)" % stack.spot(place) if place is not None else ""
        return "%s: %s%s overwrote a value that the gradient needs: %s of %s" % (
            type(error).__name__, writers[0].name, where, found.group(1), found.group(2))


class Raised:
    """What the last operator that raised was given. node: its graph.Node; step: when it raised."""
    __slots__ = ("node", "step", "error", "picked")

    def __init__(self, node, step, error, name, args, kwargs, producer):
        self.node = node
        self.step = step
        self.error = error
        self.picked = {}  # facts about an index that is out of range; not the tensor, which would be kept alive
        found = bad_index.find(name, args, kwargs)
        if found is not None:
            picking, place, number = found
            origin = producer(picking.numbers)
            self.picked = {
                "numbers": origin[2].name if origin is not None and origin[2] is not None else None,
                "listed": picking.listed, "place": place, "number": number, "count": picking.count,
                "axis": picking.axis, "from_end": picking.from_end}

    def record(self):
        """As JSON for the debugger."""
        return dict(self.picked, node=self.node.name, error=self.error)


def _elsewhere(node, frames):
    """The line where a node runs now, when it is not the one that the node is known by; else ""."""
    known, now = stack.shown(node.stack), stack.shown(frames)
    return stack.words(now) if known is not None and now != known else ""


def describe(error):
    """The message of an exception on one line; cut where it is very long, and before a list of PyTorch's own calls."""
    said = _CALLS.split(str(error), maxsplit=1)[0].replace(_PREFACE, "overwritten in place, though the gradient "
                                                                     "needs it: ")
    text = " ".join(said.split())
    whole = _lib.text(text)
    text = text if len(whole) <= _TOLD else whole[:_TOLD].decode("utf-8", "ignore") + "..."
    return "%s: %s" % (type(error).__name__, text)
