# SPDX-License-Identifier: MIT
"""Uncaught exceptions: the run stops a last time before the program ends, while all its values exist. Operators that
raise while they are watched stop it at once (failures.py); this finds the others, at no cost while nothing goes wrong.

    agent exceptions [all | uncaught | off]     all: operators are watched for it"""
import sys
import threading
import weakref

import torch

from .. import frames, native
from . import commands, expression, stack
from .guard import guarded


_MODES = ("all", "uncaught", "off")
_OF_OPERATORS = (RuntimeError, IndexError, ValueError, TypeError)


class Exceptions:
    """Learns of exceptions that nobody catches. mode: which exceptions stop the run, one of _MODES.

    The program must not notice: sys.excepthook and sys.__excepthook__ are still the same object, and look as before. A
    hook of the program's stays in place; Python's audit events announce it."""

    def __init__(self, agent):
        self._agent = agent
        self.mode = "uncaught"
        self._original = None
        self._hook = None
        self._told = None  # the last error; a hook of the program's that calls Python's announces it twice

    def install(self):
        """Installs the hook."""
        original, here = sys.__excepthook__, weakref.ref(self)
        self._original = original

        def hook(kind, error, traceback):
            if here() is not None:
                here().audited(error, traceback)
            original(kind, error, traceback)
        make = getattr(native.module, "excepthook", None)
        self._hook = make(hook) if make is not None else hook
        sys.__excepthook__ = self._hook
        if sys.excepthook is original:
            sys.excepthook = self._hook
        else:
            sys.addaudithook(_audit_of(weakref.ref(self)))

    def remove(self):
        """Removes the hook. If another one has replaced it, it only passes calls on."""
        for name in ("excepthook", "__excepthook__"):
            if self._hook is not None and getattr(sys, name) is self._hook:
                setattr(sys, name, self._original)
        self._hook = None

    def audited(self, error, traceback):
        """A hook is about to be called. If this raised, the hook would not be called."""
        try:
            self._died(error, traceback)
        except BaseException:
            pass

    def _died(self, error, traceback):
        agent = self._agent
        if self._hook is None or traceback is None or error is self._told \
                or threading.current_thread() is not threading.main_thread():
            return
        self._told = error
        if not agent.dead and self.mode != "off" and isinstance(error, Exception):
            self._stop(error, traceback)
        frames.hide(error, stack.is_ours)

    @property
    def agent(self):
        """For `guarded`."""
        return self._agent

    @guarded
    def _stop(self, error, traceback):
        agent = self._agent
        if agent.connected() and agent.steps.begun() and not agent.reporter.failures.knows(error):
            place, called = stack.raised_at(traceback)
            with agent.own_moment():
                node, args, kwargs = self._node_at(place, called, traceback, error)
                agent.reporter.failures.died(error, node, stack.words(place), args, kwargs)

    def _node_at(self, place, called, traceback, error):
        """(node, args, kwargs) of the operator that raised, as far as its line, the running module, PyTorch's functions
        and the expression identify it; else None, () and {}."""
        if place is None or not isinstance(error, _OF_OPERATORS):
            return None, (), {}
        there = [node for node in self._agent.reporter.graph.by_id.values()
                 if node.stack and not node.aside and stack.shown(node.stack) == place]
        module = _module_of(traceback)
        path = self._agent.modules.name_of(module) if module is not None else ""
        inside = [node for node in there if node.scope == path]
        calls = [((frame.f_code.co_name,), (), frame.f_locals) for frame in called]
        if not called:
            calls = filter(None, [expression.raised(_innermost(traceback))])
        for names, args, kwargs in calls:
            same = [node for node in inside or there if node.operator in names]
            if len(same) == 1 or same and inside:  # one line that runs many layers does not say which
                return same[0], args, kwargs
        return (there[0], (), called[0].f_locals if called else {}) if len(there) == 1 else (None, (), {})


def _audit_of(exceptions):
    """For sys.addaudithook, which has no counterpart that removes it: it must not keep the agent alive."""
    def audit(event, arguments):
        if event == "sys.excepthook" and exceptions() is not None:
            exceptions().audited(*arguments[2:4])
    return audit


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
        raise commands.CommandError("exceptions takes one of %s" % ", ".join(_MODES))
    agent.exceptions.mode = mode or agent.exceptions.mode
    return {"mode": agent.exceptions.mode}


commands.register("exceptions", _exceptions, "which exceptions stop the run", "[all | uncaught | off]")
