# SPDX-License-Identifier: MIT
"""An exception that nobody catches stops the run once more before the program ends, while all its values are
there. Operators that raise while they are looked at stop it where they do (telling.py); this finds the others, at
no cost while nothing goes wrong.

    agent exceptions [all | uncaught | off]     all: operators are looked at for it
"""
import sys
import threading

import torch

from . import commands, expression, stack
from .guard import guarded


_MODES = ("all", "uncaught", "off")
_OF_OPERATORS = (RuntimeError, IndexError, ValueError, TypeError)


class Exceptions:
    """Stands in for sys.excepthook. mode: which exceptions stop the run, one of _MODES."""

    def __init__(self, agent):
        self._agent = agent
        self.mode = "uncaught"
        self._original = None
        self._hook = None

    def install(self):
        """Puts the hook in."""
        original = self._original = sys.excepthook

        def hook(kind, error, traceback):
            self._died(error, traceback)
            original(kind, error, traceback)
        self._hook = sys.excepthook = hook

    def remove(self):
        """Takes it out, unless somebody put another in its place: then it passes through."""
        if self._hook is not None and sys.excepthook is self._hook:
            sys.excepthook = self._original
        self._hook = None

    def _died(self, error, traceback):
        agent = self._agent
        if self._hook is None or agent.dead or self.mode == "off" or not isinstance(error, Exception):
            return
        if traceback is None or threading.current_thread() is not threading.main_thread():
            return
        self._stop(error, traceback)

    @property
    def agent(self):
        """For `guarded`."""
        return self._agent

    @guarded
    def _stop(self, error, traceback):
        agent = self._agent
        if agent.connected() and agent.steps.begun() and not agent.telling.knows(error):
            place, called = stack.raised_at(traceback)
            with agent.unseen():
                node, args, kwargs = self._node_at(place, called, traceback, error)
                agent.telling.died(error, node, stack.words(place), args, kwargs)

    def _node_at(self, place, called, traceback, error):
        """(the node of the operator that raised, its args and kwargs), as far as its line, the module that ran, the
        functions of torch's and the expression tell. Else None; () and {}."""
        if place is None or not isinstance(error, _OF_OPERATORS):
            return None, (), {}
        there = [node for node in self._agent.telling.graph.by_id.values()
                 if node.stack and not node.aside and stack.shown(node.stack) == place]
        module = _module_of(traceback)
        path = self._agent.modules.name_of(module) if module is not None else ""
        inside = [node for node in there if node.scope == path]
        calls = [((frame.f_code.co_name,), (), frame.f_locals) for frame in called]
        if not called:
            calls = filter(None, [expression.raised(_innermost(traceback))])
        for names, args, kwargs in calls:
            same = [node for node in inside or there if node.operator in names]
            if len(same) == 1 or same and inside:  # one line of many layers does not say which
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


def _exceptions(agent, args, _node):
    mode = args.strip()
    if mode and mode not in _MODES:
        raise commands.CommandError("exceptions: one of %s" % ", ".join(_MODES))
    agent.exceptions.mode = mode or agent.exceptions.mode
    return {"mode": agent.exceptions.mode}


commands.register("exceptions", _exceptions, "which exceptions stop the run", "[all | uncaught | off]")
