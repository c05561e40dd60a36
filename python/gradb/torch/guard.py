# SPDX-License-Identifier: MIT
"""The one barrier for faults: nothing of ours may break the training, and our code must not run the program's. What we
ask of a tensor would otherwise reach the program: a subclass and a mode see every call and every attribute."""
import functools
import threading

import torch
from torch import overrides

OLD = hasattr(torch._C, "_set_torch_function_mode")  # before 2.0: one mode in C runs a stack in Python
_local = threading.local()


def set_mode():
    """Before 2.0: sets the mode in C according to the stack, except in moments apart."""
    wanted = torch._C._len_torch_function_stack() and not getattr(_local, "depth", 0)
    torch._C._set_torch_function_mode(overrides._TorchFunctionStackMode() if wanted else None)


class _NoMode:
    """The same as DisableTorchFunction from 2.0 on."""
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
    """The same as _Enabled, before 2.0."""
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


# Inside, calls of PyTorch's functions by our code are seen by no mode and no subclass.
apart = _NoMode if OLD else torch._C.DisableTorchFunction
# Inside of that, a moment of the program's.
of_program = _OfProgram if OLD else _Enabled


def guarded(method):
    """For methods of a class with an `agent`: a fault is reported once and turns the agent off. The method returns None
    then, and is not run any more."""
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
    """The same for methods that must run after a fault too, to end what was begun."""
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        try:
            with apart():
                return method(self, *args, **kwargs)
        except Exception as error:
            getattr(self, "agent", self).fault(error)
            return None
    return call
