# SPDX-License-Identifier: MIT
"""Code in which nothing may be looked at: what torch.compile runs, and what is recorded as a CUDA graph.

A compiled function is guarded by the function modes that were on when it was compiled: with ours it would be
compiled anew, with ours inside it. So the mode comes off where such a function is entered. While a CUDA graph is
recorded no value can be read, and what waits for the device ends the recording with an error.
"""
import functools
import sys

import torch

from .. import _lib, native
from .guard import contained

# Folded to True where a function is compiled: what stands behind it is no part of the compiled code. From 2.0 to
# 2.2 it is the second one.
is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) \
    or getattr(torch._utils, "is_compiling", None) or (lambda: False)
_EVAL_FRAME = "torch._dynamo.eval_frame"
_SETTERS = ("_maybe_set_eval_frame", "set_eval_frame")  # what its functions call: the first one that is there
_RULES = ("torch._dynamo.trace_rules", "torch._dynamo.skipfiles")  # `add` of one names a file that is not compiled
_TRACED = frozenset(("modules", "optim"))  # what of ours a compiled function runs through


class Regions(native.base("Regions")):
    """closed: nothing may be looked at now; compiled: because this is compiled code; compiles: something was compiled,
    or will be; stepped: an optimizer whose step was part of compiled code."""

    def __init__(self, agent):
        self.agent = agent
        self.closed = False
        self.compiles = False
        self.stepped = None
        self.compiled = self._recording = False
        self._watches = False
        self._wrapped = []       # (where, name, original, wrapper)
        self._caller = None      # the frame that entered compiled code
        self._told = set()

    def install(self):
        """Is told where a CUDA graph is recorded, and where something is compiled."""
        graph = torch.cuda.CUDAGraph
        self._wrap(graph, "capture_begin", self._recorder(graph.capture_begin, True))
        self._wrap(graph, "capture_end", self._recorder(graph.capture_end, False))
        if hasattr(torch, "compile"):
            original = torch.compile

            @functools.wraps(original)
            def compile_(*args, **kwargs):
                self._expect()  # before: a compiled module may keep the function that a module is called with
                made = original(*args, **kwargs)
                self._compiler_ran()
                return made
            self._wrap(torch, "compile", compile_)

    def _wrap(self, where, name, wrapper):
        self._wrapped.append((where, name, getattr(where, name), wrapper))
        setattr(where, name, wrapper)

    def _expect(self):
        """What is compiled is guarded by the functions that it went through: they must stay the same."""
        if not self.compiles:
            self.compiles = True
            self.agent.optimizers.hook_again()
            self.agent.stir()

    @contained
    def _compiler_ran(self):
        """torch.compile was called: the compiler is loaded, and has done to torch what it does."""
        self.watch()
        self.agent.optimizers.hook_again()

    def _change(self, compiled, recording):
        self.compiled, self._recording = compiled, recording
        self.closed = compiled or recording
        self.agent.stir()
        self.agent.region_changed()

    # ---- CUDA graphs ----

    def _recorder(self, original, on):
        @functools.wraps(original)
        def record(graph, *args, **kwargs):
            ours = self.agent.is_training_thread() and not self.agent.dead
            if on and ours:
                self.tell("a CUDA graph is recorded: what it runs is not seen, now and when it is replayed; where "
                          "whole steps are in it, gradb.torch.step() says where they end")
                self._change(self.compiled, True)
            try:
                return original(graph, *args, **kwargs)
            finally:
                if self._recording and not on and self.agent.is_training_thread():
                    self._change(self.compiled, False)
        return record

    def recording(self):
        """Whether a CUDA graph is being recorded: what waits for the device would end that."""
        return self._recording or (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())

    def are_closed(self):
        """Whether this is code in which nothing may be looked at."""
        return self.closed or self.recording()

    # ---- compiled code ----

    def watch(self):
        """Is told where compiled code begins and ends, once there may be any."""
        module = None if self._watches else sys.modules.get(_EVAL_FRAME)
        if module is None:
            return
        name = next((name for name in _SETTERS if hasattr(module, name)), None)
        if name is None:
            return
        original = getattr(module, name)
        _leave_alone()

        def set_frame(callback):
            """What compiles, or None where that ends. Behind an `original` that begins it every function called
            would be compiled."""
            if callback is None:
                result = original(callback)
                if self.compiled:
                    self._ended(sys._getframe(1))
                return result
            self._begins(sys._getframe(1))
            return original(callback)
        if native.module is not None:
            set_frame = native.module.frame_setter(self, original, set_frame)
        self._wrap(module, name, set_frame)
        self._watches = True
        self.agent.stir()

    def watches(self):
        """Whether there may be compiled code."""
        return self._watches

    def remove(self):
        """Is told no more."""
        for where, name, original, wrapper in self._wrapped:
            if getattr(where, name) is wrapper:
                setattr(where, name, original)
        self._wrapped = []
        self._watches = False

    @contained
    def _begins(self, caller):
        self._expect()
        if not self.compiled and self.agent.is_training_thread():
            self._caller = caller
            if self.agent.looking:
                self.tell("a function is compiled: of its inside only inputs, outputs and gradients can be seen; "
                          "TORCH_COMPILE_DISABLE=1 runs it operator by operator")
            self._change(True, self._recording)

    @contained
    def _ended(self, caller):
        """The compiler itself ends it for moments, too: who began it must say so."""
        if (caller is self._caller or caller.f_code.co_name == "__exit__") \
                and self.agent.is_training_thread():
            self._caller = None
            self._change(False, self._recording)
            optimizer, self.stepped = self.stepped, None
            if optimizer is not None:
                self.agent.steps.optimizer_begins(optimizer)
                self.agent.steps.optimizer_ended(optimizer)

    def tell(self, text):
        """Says what cannot be seen, once."""
        if text not in self._told and self.agent.connected():
            self._told.add(text)
            self.agent.library.gradb_event(self.agent.handle, b"unseen", _lib.text(text), 0)


def _leave_alone():
    """Our own functions are not compiled where compiled code comes upon them."""
    rules = next((rules for rules in map(sys.modules.get, _RULES) if hasattr(rules, "add")), None)
    package = __name__.rsplit(".", 1)[0]
    for name in sorted(sys.modules) if rules is not None else ():
        if name.startswith(package + ".") and name.rsplit(".", 1)[1] not in _TRACED:
            rules.add(name)
