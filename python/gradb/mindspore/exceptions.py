# SPDX-License-Identifier: MIT
"""Exceptions: the run stops a last time before an uncaught one ends the program, at the operator that raised it if its
operators were watched.

    agent exceptions [all | uncaught | off]     all: operators are watched, and stop the run when they raise"""
import sys
import threading

from .. import _lib, frames
from . import commands, stack
from .guard import guarded

_MODES = ("all", "uncaught", "off")


class Exceptions:
    """Learns of exceptions. mode: which ones stop the run, one of _MODES."""

    def __init__(self, agent):
        self.agent = agent
        self.mode = "uncaught"
        self._original = None
        self._hook = None
        self._raised = (None, None)  # the last error that an operator raised, and its node
        self._stopped = None         # the last error that stopped the run

    def install(self):
        """Installs the hook."""
        original = sys.excepthook
        exceptions = self

        def hook(kind, error, traceback):
            exceptions._died(error)
            frames.hide(error, stack.is_ours)
            original(kind, error, traceback)
        self._original, self._hook = original, hook
        sys.excepthook = hook

    def remove(self):
        """Removes the hook. If another one has replaced it, it only passes calls on."""
        if self._hook is not None and sys.excepthook is self._hook:
            sys.excepthook = self._original
        self._hook = None

    @guarded
    def raised(self, error, node):
        """An operator that is watched has raised; node: None, when it cannot be made."""
        if error is self._raised[0]:
            return  # a cell around it
        self._raised = (error, node)
        if self.mode == "all":
            self._stop(error, node)

    def _died(self, error):
        if self._hook is None or not isinstance(error, Exception) or error is self._stopped \
                or threading.current_thread() is not threading.main_thread():
            return
        self._died_now(error)

    @guarded
    def _died_now(self, error):
        if self.mode != "off":
            self._stop(error, self._raised[1] if self._raised[0] is error else None)

    def _stop(self, error, node):
        agent = self.agent
        if not agent.connected() or not agent.steps.begun():
            return
        self._stopped = error
        place = stack.raised_at(error.__traceback__)
        text = "%s: %s%s" % (type(error).__name__, _first_line(error),
                             " (%s)" % place if place and node is None else "")
        agent.graph.publish()
        agent.library.gradb_raised(agent.handle, node.id if node is not None else 0, _lib.text(text))


def _first_line(error):
    """MindSpore appends a part of its own after the first line."""
    return str(error).strip().split("\n", 1)[0]


def _exceptions(agent, args, _node):
    mode = args.strip()
    if mode and mode not in _MODES:
        raise commands.CommandError("exceptions takes one of %s" % ", ".join(_MODES))
    agent.exceptions.mode = mode or agent.exceptions.mode
    return {"mode": agent.exceptions.mode}


commands.register("exceptions", _exceptions, "which exceptions stop the run", "[all | uncaught | off]")
