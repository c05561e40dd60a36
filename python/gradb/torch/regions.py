# SPDX-License-Identifier: MIT
"""Code in which nothing may be watched: what torch.compile runs, and what is recorded as a CUDA graph.

A compiled function is guarded by the function modes that were active when it was compiled: under ours it would be
compiled again, with ours inside. So the mode is popped where a compiled function is entered. While a CUDA graph is
recorded no value can be read, and whatever waits for the device ends the recording with an error."""
import functools
import sys

import torch

from .. import _lib, native
from . import devices
from .guard import contained

# Folded to True inside compiled functions, so that code after it is not compiled. From 2.0 to 2.2 it is the second one.
is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) \
    or getattr(torch._utils, "is_compiling", None) or (lambda: False)
_EVAL_FRAME = "torch._dynamo.eval_frame"
_SETTERS = ("_maybe_set_eval_frame", "set_eval_frame")  # its functions call the first one that exists
_RULES = ("torch._dynamo.trace_rules", "torch._dynamo.skipfiles")  # their `add` excludes a file from compilation
_TRACED = frozenset(("modules", "optim"))  # our modules that compiled functions run through


class Regions(native.base("Regions")):
    """closed: nothing may be watched now; compiled: because this is compiled code; compiles: something was compiled, or
    will be; stepped: an optimizer whose step was part of compiled code."""

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
        """Wraps the recording of CUDA graphs and torch.compile."""
        for graph in devices.graph_types():
            self._wrap(graph, "capture_begin", self._recorder(graph.capture_begin, True))
            self._wrap(graph, "capture_end", self._recorder(graph.capture_end, False))
        if hasattr(torch, "compile"):
            original = torch.compile

            @functools.wraps(original)
            def compile_(*args, **kwargs):
                self._expect()  # before it: a compiled module may keep the function that calls a module
                made = original(*args, **kwargs)
                self._compiler_ran()
                return made
            self._wrap(torch, "compile", compile_)

    def _wrap(self, where, name, wrapper):
        self._wrapped.append((where, name, getattr(where, name), wrapper))
        setattr(where, name, wrapper)

    def _expect(self):
        """Something is about to be compiled, and will be guarded by the functions that it runs through: they must stay
        the same."""
        if not self.compiles:
            self.compiles = True
            self.agent.optimizers.hook_again()
            self.agent.end_idle()

    @contained
    def _compiler_ran(self):
        """torch.compile has run: the compiler is loaded, and has changed PyTorch."""
        self.watch()
        self.agent.optimizers.hook_again()

    def _change(self, compiled, recording):
        self.compiled, self._recording = compiled, recording
        self.closed = compiled or recording
        self.agent.end_idle()
        self.agent.region_changed()

    # ---- CUDA graphs ----

    def _recorder(self, original, on):
        @functools.wraps(original)
        def record(graph, *args, **kwargs):
            ours = self.agent.is_training_thread() and not self.agent.dead
            if on and ours:
                self.tell("a CUDA graph is recorded: gradb cannot see what it runs, now or when it is replayed; if "
                          "it contains whole steps, call gradb.torch.step() where they end")
                self._change(self.compiled, True)
            try:
                return original(graph, *args, **kwargs)
            finally:
                if self._recording and not on and self.agent.is_training_thread():
                    self._change(self.compiled, False)
        return record

    def recording(self):
        """Whether a CUDA graph is being recorded, which ends when anything waits for the device."""
        return self._recording or devices.is_capturing()

    def are_closed(self):
        """Whether this is code in which nothing may be watched."""
        return self.closed or self.recording()

    # ---- compiled code ----

    def watch(self):
        """Wraps the entry and exit of compiled code, once there may be any."""
        module = None if self._watches else sys.modules.get(_EVAL_FRAME)
        if module is None:
            return
        name = next((name for name in _SETTERS if hasattr(module, name)), None)
        if name is None:
            return
        original = getattr(module, name)
        _leave_alone()

        def set_frame(callback):
            """callback: the compiler, or None at the end. After an `original` that begins it, every function that is
            called would be compiled."""
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
        self.agent.end_idle()

    def watches(self):
        """Whether there may be compiled code."""
        return self._watches

    def remove(self):
        """Removes the wrappers."""
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
            if self.agent.watching_now:
                self.tell("a function is compiled: only its inputs, outputs and gradients can be seen; "
                          "TORCH_COMPILE_DISABLE=1 runs it operator by operator")
            self._change(True, self._recording)

    @contained
    def _ended(self, caller):
        """Compiled code has ended, if the frame that began it says so: the compiler itself ends it for moments, too."""
        if (caller is self._caller or caller.f_code.co_name == "__exit__") \
                and self.agent.is_training_thread():
            self._caller = None
            self._change(False, self._recording)
            optimizer, self.stepped = self.stepped, None
            if optimizer is not None:
                self.agent.steps.optimizer_begins(optimizer)
                self.agent.steps.optimizer_ended(optimizer)

    def tell(self, text):
        """Reports what cannot be seen, once."""
        if text not in self._told and self.agent.connected():
            self._told.add(text)
            self.agent.library.gradb_event(self.agent.handle, b"unseen", _lib.text(text), 0)


def _file_of(name):
    """A module's file; of a package, its folder."""
    return sys.modules[name].__spec__.origin.removesuffix("__init__.py")


def _leave_alone():
    """Excludes our own functions from compilation."""
    rules = next((rules for rules in map(sys.modules.get, _RULES) if hasattr(rules, "add")), None)
    package = __name__.rsplit(".", 1)[0]
    names = [name for name in sorted(sys.modules)
             if name.startswith(package + ".") and name.rsplit(".", 1)[1] not in _TRACED]
    if rules is None or not names:
        return
    first, *others = names
    rules.add(first)
    # Each `add` compiles one regular expression of all files, which takes milliseconds. If it keeps them in the list
    # that we know, the others are put there at once.
    files = getattr(rules, "SKIP_DIRS", None)
    if isinstance(files, list) and files and files[-1] == _file_of(first):
        files += map(_file_of, others)
        others = others[-1:]  # added again, to compile the expression
    for name in others:
        rules.add(name)
