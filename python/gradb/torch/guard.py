# SPDX-License-Identifier: MIT
"""The one fault barrier: nothing of ours may break the training, and none of the program's code is called by ours.

What we ask of a tensor would be asked of the program, too: a subclass and a mode see each call and each attribute.
"""
import functools
import threading

import torch
from torch import overrides

OLD = hasattr(torch._C, "_set_torch_function_mode")  # before 2.0: one mode in C, which runs a stack of them in Python
_local = threading.local()


def set_mode():
    """Before 2.0: the mode in C is as the stack says, but for moments apart."""
    wanted = torch._C._len_torch_function_stack() and not getattr(_local, "depth", 0)
    torch._C._set_torch_function_mode(overrides._TorchFunctionStackMode() if wanted else None)


class _NoMode:
    """The same as DisableTorchFunction since 2.0."""
    __slots__ = ("_classes",)

    def __enter__(self):
        self._classes = torch._C.DisableTorchFunction()
        self._classes.__enter__()
        _local.depth = getattr(_local, "depth", 0) + 1
        set_mode()

    def __exit__(self, *what):
        _local.depth -= 1
        set_mode()
        self._classes.__exit__(*what)


class _OfProgram:
    """Before 2.0."""
    __slots__ = ("_classes", "_depth")

    def __enter__(self):
        self._classes = torch._C._EnableTorchFunction()
        self._depth, _local.depth = getattr(_local, "depth", 0), 0
        set_mode()

    def __exit__(self, *_):
        _local.depth = self._depth
        set_mode()
        self._classes = None


class _Enabled:
    __slots__ = ("_classes",)

    def __enter__(self):
        self._classes = torch._C._EnableTorchFunction()

    def __exit__(self, *_):
        self._classes = None


# Calls of torch's functions inside, by code of ours, are no mode's and no subclass's.
apart = _NoMode if OLD else torch._C.DisableTorchFunction
# Within that, a moment of the program's.
of_program = _OfProgram if OLD else _Enabled


def guarded(method):
    """For methods of what has an `agent`: a fault is told once and disarms the agent; None is returned then,
    and by every call after it."""
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        agent = self.agent
        if agent.dead:
            return None
        try:
            with apart():
                return method(self, *args, **kwargs)
        except Exception as error:
            agent.fault(error)
            return None
    return call


def contained(method):
    """The same for what must be done after a fault, too: so that what was begun is ended."""
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        try:
            with apart():
                return method(self, *args, **kwargs)
        except Exception as error:
            getattr(self, "agent", self).fault(error)
            return None
    return call
