# SPDX-License-Identifier: MIT
"""Code in which nothing may be looked at: what torch.compile runs, and what is recorded as a CUDA graph.

A compiled function is guarded by the function modes that were on when it was compiled: with ours it would be
compiled anew, with ours inside it. So the mode comes off where such a function is entered. While a CUDA graph is
recorded no value can be read, and what waits for the device ends the recording with an error.
"""
import sys
import threading

import torch

from .. import _lib

# Folded to True where a function is compiled: what stands behind it is no part of the compiled code.
is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)
_EVAL_FRAME = "torch._dynamo.eval_frame"
_SETTERS = ("_maybe_set_eval_frame", "set_eval_frame")  # what its functions call: the first one that is there
_TRACED = frozenset(("modules", "optim"))  # what of ours a compiled function runs through


class Regions:
    """compiled: this thread runs what torch.compile made; stepped: an optimizer whose step was part of that."""

    def __init__(self, agent):
        self.agent = agent
        self.compiled = False
        self.stepped = None
        self._thread = threading.get_ident()
        self._wrapped = None     # (module, name, original, wrapper)
        self._capturing = torch.cuda.is_current_stream_capturing if torch.cuda.is_available() else None
        self._caller = None      # the frame that entered it
        self._told = set()

    def watch(self):
        """Is told where compiled code begins and ends, once there may be any."""
        module = sys.modules.get(_EVAL_FRAME)
        if self._wrapped is not None or module is None:
            return
        name = next((name for name in _SETTERS if hasattr(module, name)), None)
        if name is None:
            return
        original = getattr(module, name)
        _leave_alone()

        def set_frame(callback):
            """What compiles, or None where that ends. Behind an `original` that begins it every function called
            would be compiled."""
            caller = sys._getframe(1)
            if callback is None:
                result = original(callback)
                self._ended(caller)
                return result
            self._begins(caller)
            return original(callback)
        self._wrapped = (module, name, original, set_frame)
        setattr(module, name, set_frame)

    def watches(self):
        """Whether there may be compiled code."""
        return self._wrapped is not None

    def remove(self):
        """Is told no more."""
        if self._wrapped is not None:
            module, name, original, wrapper = self._wrapped
            if getattr(module, name) is wrapper:
                setattr(module, name, original)
        self._wrapped = None

    def _begins(self, caller):
        if not self.compiled and threading.get_ident() == self._thread and not self.agent.dead:
            self.compiled = True
            self._caller = caller
            if self.agent.looking:
                self.tell("a function is compiled: of its inside only inputs, outputs and gradients can be seen; "
                          "TORCH_COMPILE_DISABLE=1 runs it operator by operator")
            self.agent.region_changed()

    def _ended(self, caller):
        """The compiler itself ends it for moments, too: who began it must say so."""
        if self.compiled and (caller is self._caller or caller.f_code.co_name == "__exit__") \
                and threading.get_ident() == self._thread:
            self.compiled = False
            self._caller = None
            self.agent.region_changed()
            optimizer, self.stepped = self.stepped, None
            if optimizer is not None:
                self.agent.steps.optimizer_begins(optimizer)
                self.agent.steps.optimizer_ended(optimizer)

    def records(self):
        """Whether a CUDA graph is being recorded: nothing may be read now."""
        if self._capturing is None or not self._capturing():
            return False
        self.tell("a CUDA graph is being recorded: what it runs later is not seen, and its steps are not counted; "
                  "gradb.torch.step() does")
        return True

    def tell(self, text):
        """Says what cannot be seen, once."""
        if text not in self._told and self.agent.connected():
            self._told.add(text)
            self.agent.library.gradb_event(self.agent.handle, b"warning", _lib.text(text), 0)


def _leave_alone():
    """Our own functions are not compiled where compiled code comes upon them."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    package = __name__.rsplit(".", 1)[0]
    for name in sorted(sys.modules) if rules is not None else ():
        if name.startswith(package + ".") and name.rsplit(".", 1)[1] not in _TRACED:
            rules.add(name)
