# SPDX-License-Identifier: MIT
"""Which module runs: a path of names per thread, kept by wrapping nn.Module.__call__.

A root module is named by the user's variable that holds it, its children by named_modules().
"""
import threading

import torch

from . import stack

_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)


class Modules:
    """Installed once; `path()` is the scope of what runs in this thread."""

    def __init__(self, agent):
        self._agent = agent
        self._local = threading.local()
        self._names = {}  # id(module) -> (module, path); the module is held by its root's entry below
        self._roots = {}  # name -> module
        self._original = None
        self._wrapper = None

    def path(self):
        """The scope of the module that runs in this thread; "" outside of all."""
        return getattr(self._local, "path", "")

    def name_of(self, module):
        """The path of a module that was seen, or None."""
        entry = self._names.get(id(module))
        return entry[1] if entry is not None and entry[0] is module else None

    def roots(self):
        """name -> module, of all roots seen."""
        return dict(self._roots)

    def install(self):
        """Wraps nn.Module.__call__."""
        original = torch.nn.Module.__call__
        local, module_called = self._local, self._agent.module_called

        def __call__(module, *args, **kwargs):
            if _compiling():
                return original(module, *args, **kwargs)
            before = getattr(local, "path", "")
            module_called()
            try:
                local.path = self._enter(module, before)
            except Exception:  # names are a service: the module runs without
                local.path = before
            try:
                return original(module, *args, **kwargs)
            finally:
                local.path = before

        self._original, self._wrapper = original, __call__
        torch.nn.Module.__call__ = __call__

    def remove(self):
        """Takes the wrapper off, unless somebody wrapped after us."""
        if self._wrapper is not None and torch.nn.Module.__call__ is self._wrapper:
            torch.nn.Module.__call__ = self._original
        self._wrapper = None

    def add_root(self, module, name):
        """Names a module and all below it; its parameters become nodes."""
        base, count = name, 1
        while name in self._roots:
            if self._roots[name] is module:
                return name
            name = "%s_%d" % (base, count)
            count += 1
        self._roots[name] = module
        for path, child in module.named_modules():
            known = self._names.get(id(child))
            if known is None or known[0] is not child:
                self._names[id(child)] = (child, name + "/" + path.replace(".", "/") if path else name)
        self._agent.telling.add_module(module, name)
        return name

    def _enter(self, module, before):
        entry = self._names.get(id(module))
        if entry is not None and entry[0] is module:
            return entry[1]
        if before == "":
            return self.add_root(module, variable_of(module) or type(module).__name__)
        # made inside a forward: it has no name of its own
        return before + "/" + type(module).__name__


def variable_of(value):
    """The name of the user's variable that holds it, looked for from the innermost frame outwards."""
    for frame in stack.user_frames(2):
        for names in (frame.f_locals, frame.f_globals):
            for name, held in list(names.items()):
                if held is value and name != "self" and not name.startswith("_"):
                    return name
    return None
