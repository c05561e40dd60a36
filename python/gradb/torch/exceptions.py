# SPDX-License-Identifier: MIT
"""An exception that nobody catches stops the run once more before the program ends, while all its values are
there. Operators that raise while they are looked at stop it where they do (telling.py); this finds the others, at
no cost while nothing goes wrong.

    agent exceptions [all | uncaught | off]     all: operators are looked at for it
"""
import os
import sys
import threading

from . import commands, stack
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
            place, inner = _place(traceback)
            node = self._node_at(place, inner, error)
            with agent.unseen():
                agent.telling.died(error, node, _words(place), inner.f_locals if inner is not None else {})

    def _node_at(self, place, inner, error):
        """The node of the operator that raised, as far as its line and torch's function tell; None."""
        if place is None or not isinstance(error, _OF_OPERATORS):
            return None
        name = inner.f_code.co_name if inner is not None else None
        found = [node for node in self._agent.telling.graph.by_id.values()
                 if node.stack and not node.aside and _is_at(node.stack, place)]
        return next((node for node in found if node.operator == name), found[0] if len(found) == 1 else None)


def _place(traceback):
    """((code, line) of the innermost frame of the user's own code, the frame of the function of torch's that it
    called); None for what there is not."""
    place = inner = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if stack.is_user(code):
            place, inner = (code, traceback.tb_lineno), None
        elif inner is None and stack.is_torch(code) and not code.co_name.startswith("_"):
            inner = traceback.tb_frame
        traceback = traceback.tb_next
    return place, inner


def _is_at(frames, place):
    for code, line, is_library in frames:
        if not is_library:
            return (code, line) == place
    return False


def _words(place):
    return "" if place is None else " (%s:%d in %s)" % (os.path.basename(place[0].co_filename), place[1],
                                                       place[0].co_name)


def _exceptions(agent, args, _node):
    mode = args.strip()
    if mode and mode not in _MODES:
        raise commands.CommandError("exceptions: one of %s" % ", ".join(_MODES))
    agent.exceptions.mode = mode or agent.exceptions.mode
    return {"mode": agent.exceptions.mode}


commands.register("exceptions", _exceptions, "which exceptions stop the run", "[all | uncaught | off]")
