# SPDX-License-Identifier: MIT
"""Uncaught exceptions, for the agents of all frameworks: the run stops a last time before the program ends, while all
its values exist, and the command `exceptions`.

The program must not notice: sys.excepthook and sys.__excepthook__ are still the same object, and look as before. A hook
of the program's stays in place; Python's audit events announce it."""
import sys
import threading
import weakref

from . import frames, native
from .commands import CommandError

_MODES = ("all", "watched", "uncaught", "off")


class Exceptions:
    """Learns of exceptions that nobody catches. mode: which exceptions stop the run, one of _MODES: those of all
    operators, those of operators that are watched anyway, or only those that nobody catches."""

    def __init__(self, agent):
        self.agent = agent
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
        if self._hook is None or traceback is None or error is self._told \
                or threading.current_thread() is not threading.main_thread():
            return
        self._told = error
        if not self.agent.dead and self.mode != "off" and isinstance(error, Exception):
            self.agent.evaluator.failed = traceback
            try:
                self.uncaught(error, traceback)
            finally:
                self.agent.evaluator.failed = None
        frames.hide(error, self.is_ours)

    # ---- what a framework knows ----

    def uncaught(self, error, traceback):
        """Stops the run."""
        raise NotImplementedError

    @staticmethod
    def is_ours(frame):
        """Whether a frame runs code of gradb."""
        raise NotImplementedError


def _audit_of(exceptions):
    """For sys.addaudithook, which has no counterpart that removes it: it must not keep the agent alive."""
    def audit(event, arguments):
        if event == "sys.excepthook" and exceptions() is not None:
            exceptions().audited(*arguments[2:4])
    return audit


def command(agent, args, _node):
    """The function of `exceptions`, for commands.register."""
    mode = args.strip()
    if mode and mode not in _MODES:
        raise CommandError("exceptions takes one of %s" % ", ".join(_MODES))
    agent.exceptions.mode = mode or agent.exceptions.mode
    return {"mode": agent.exceptions.mode}
