# SPDX-License-Identifier: MIT
"""Uncaught exceptions: the run stops a last time before the program ends, while all its values exist. Operators that
raise while they are watched stop it at once (failures.py); this finds the others, at no cost while nothing goes wrong.

    agent exceptions [all | watched | uncaught | off]     all: operators are watched for it; uncaught: none stops it
                                                          at once, because the program may catch the exception"""
import torch

from .. import exceptions
from . import commands, expression, stack
from .guard import guarded

_OF_OPERATORS = (RuntimeError, IndexError, ValueError, TypeError)


class Exceptions(exceptions.Exceptions):
    """Learns of exceptions that nobody catches."""
    is_ours = staticmethod(stack.is_ours)

    def __init__(self, agent):
        super().__init__(agent)
        self.mode = "watched"

    @guarded
    def uncaught(self, error, traceback):
        """See the base."""
        stack.uncaught = traceback
        try:
            self._stop(error, traceback)
        finally:
            stack.uncaught = None

    def _stop(self, error, traceback):
        agent = self.agent
        if agent.connected() and agent.steps.begun() and not agent.reporter.failures.knows(error):
            if agent.reporter.failures.stops_late(error):
                return
            place, called = stack.raised_at(traceback)
            with agent.own_moment():
                node, args, kwargs = self._node_at(place, called, traceback, error)
                agent.reporter.failures.died(error, node, place, args, kwargs)

    def _node_at(self, place, called, traceback, error):
        """(node, args, kwargs) of the operator that raised, as far as its line, the running module, PyTorch's functions
        and the expression identify it; else None, () and {}."""
        if place is None or not isinstance(error, _OF_OPERATORS):
            return None, (), {}
        there = [node for node in self.agent.reporter.graph.by_id.values()
                 if node.stack and not node.aside and stack.shown(node.stack) == place]
        module = _module_of(traceback)
        path = self.agent.modules.name_of(module) if module is not None else ""
        function = stack.scope_name(place[0])  # the scope of what runs outside of modules ends with it
        inside = [node for node in there if (node.scope == path if path else node.scope.rsplit("/", 1)[-1] == function)]
        calls = [((frame.f_code.co_name,), (), frame.f_locals) for frame in called]
        if not called:
            calls = filter(None, [expression.raised(_innermost(traceback))])
        for names, args, kwargs in calls:
            same = [node for node in inside or there if node.operator in names]
            if len(same) == 1 or same and inside:  # one line that runs many layers does not say which
                return same[0], args, kwargs
        return (there[0], (), called[0].f_locals if called else {}) if len(there) == 1 else (None, (), {})


def _innermost(traceback):
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback


def _module_of(traceback):
    """The innermost module that ran, or None."""
    module = None
    while traceback is not None:
        holder = traceback.tb_frame.f_locals.get("self")
        module = holder if isinstance(holder, torch.nn.Module) else module
        traceback = traceback.tb_next
    return module


commands.register("exceptions", exceptions.command, "which exceptions stop the run",
                  "[all | watched | uncaught | off]")
