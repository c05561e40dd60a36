# SPDX-License-Identifier: MIT
"""Which module runs: a path of names per thread, kept by wrapping nn.Module.__call__.

A root module is named after the user's variable, attribute or list that holds it, its children after their names in it.
Levels that only wrap (DataParallel, DistributedDataParallel, FSDP, compiled modules) are left out, so the names are
those of the plain model. What a module does in evaluation, while it also trains, is under `eval/`, so the names of the
training are the same with and without evaluation.

While nobody watches operators, nobody asks for the path, and each call of a module costs one wrapper. Then the path is
that of the outermost module; if watching begins inside it, the modules that are running are found on the stack. While
steps are idle (see Agent.step_began) even that is not needed: nn.Module has its own __call__ again, and only the
classes of the modules that forward passes begin with have one of ours."""
import sys
import threading
import types
import weakref

import torch

from .. import native
from . import members, regions, stack, variables
from .graph import EVALUATION

_MAX_FIRST = 32   # classes of modules that forward passes begin with
_MAX_MISSED = 3   # so many backward passes without a forward pass before them, and all modules are wrapped for good


class _Local(threading.local):
    """State of each thread. path: of the running module, see above; site: of the outermost one, None until somebody
    asks; evaluates: the outermost one does."""
    path = ""
    site = None
    evaluates = False


class Modules:
    """Names modules. While operators are watched, path() is the scope of what runs in this thread."""

    def __init__(self, agent):
        self._agent = agent
        self.local = _Local()
        self._known = {}  # id(module) -> members.Known
        self._roots = {}  # name -> weak reference
        self.paths = {}   # id(module) -> (weak reference, path, path when it evaluates), of those that are not opaque
        self._original = None
        self._wrapper = None
        self._code = None      # the code on the stack for each running module, whose first argument is named `_self`
        self._self = ""
        self._first = set()    # classes of the modules that forward passes have begun with
        self._missed = (0, 0)  # how many forward passes in a row were missed, and how many classes were known then
        self._entrance = None  # replaces __call__ of those classes while steps are idle
        self._handed = False   # it does now

    def path(self):
        """The scope of the module that runs in this thread; "" outside all modules."""
        return self.local.path

    def site(self):
        """The site (see stack.site) of what runs in this thread: where the program called the outermost module, or
        outside all modules PyTorch's function. Each micro-batch has its own."""
        local = self.local
        if not local.path:
            return self._in_batch(stack.site(2))
        if local.site is None:
            local.site = self._in_batch(stack.site(2, self._code))
        return local.site

    def _in_batch(self, site):
        batch = self._agent.steps.micro_batch()
        return stack.site_in(site, batch) if batch else site

    def name_of(self, module):
        """The path of a known module, or None."""
        known = self._find(module)
        return known.path if known is not None else None

    def roots(self):
        """name -> module, of all roots that still exist."""
        found = {name: reference() for name, reference in self._roots.items()}
        return {name: module for name, module in found.items() if module is not None}

    def all(self):
        """(path, module) of all known modules that exist."""
        return [(known.path, module) for known, module in [(known, known.ref()) for known in self._known.values()]
                if module is not None]

    def install(self):
        """Wraps nn.Module.__call__."""
        original = torch.nn.Module.__call__
        wrapper = self._make_wrapper(original)
        self._original, self._wrapper, self._entrance = original, wrapper, None
        plain = isinstance(original, types.FunctionType) and original.__code__.co_argcount > 0
        self._code = (original if plain else wrapper).__code__
        self._self = self._code.co_varnames[0]
        torch.nn.Module.__call__ = wrapper

    def _make_wrapper(self, original):
        local, agent, steps, place = self.local, self._agent, self._agent.steps, self._path_at
        has_gradients, frame = torch.is_grad_enabled, sys._getframe
        enter = agent.native.enter_module if agent.native is not None else lambda module: None
        is_nested = agent.native.is_nested if agent.native is not None else lambda: False
        is_outermost = agent.native.is_outermost if agent.native is not None else lambda module: False

        def __call__(module, *args, **kwargs):
            if regions.is_compiling():
                return original(module, *args, **kwargs)
            before = enter(module)
            if before is not None:  # nearly always, while operators are watched
                try:
                    return original(module, *args, **kwargs)
                finally:
                    local.path = before
            if is_nested():
                try:
                    return original(module, *args, **kwargs)
                finally:
                    if agent.watching:  # now
                        local.path = place(frame(1))
            if is_outermost(module):
                try:
                    return original(module, *args, **kwargs)
                finally:
                    local.path = ""
            if agent.dead:
                agent.stop_watching()
                return original(module, *args, **kwargs)
            before = agent.watching
            begins = not steps.forward and has_gradients()
            if begins or (agent.words.armed or agent.overflow is not None) and not agent.watching_now:
                agent.module_called()
                begins = begins and steps.forward and agent.is_training_thread()
            if not agent.watching:
                if local.path:
                    try:
                        return original(module, *args, **kwargs)
                    finally:
                        if agent.watching:  # now
                            local.path = place(frame(1))
            elif not before:
                local.path = place(frame(1))
            before = local.path
            try:
                local.path = self._enter(module, before, begins)
                if agent.allocations is not None and begins:
                    agent.allocations.network_reads(args, kwargs)
            except Exception:  # a missing name must not stop the module
                local.path = before
            try:
                if agent.watching_now and _is_opaque(module):
                    return agent.reporter.run_opaque(original, module, args, kwargs)
                return original(module, *args, **kwargs)
            finally:
                local.path = before
        return __call__

    def remove(self):
        """Removes the wrapper, unless it was wrapped itself."""
        self.take_back()
        if self._wrapper is not None and torch.nn.Module.__call__ is self._wrapper:
            torch.nn.Module.__call__ = self._original
        self._wrapper = None

    # ---- idle steps ----

    def hand_over(self):
        """Wraps only the modules that forward passes begin with."""
        kind = torch.nn.Module
        if self._handed or not self._first or self._missed[0] > _MAX_MISSED or kind.__call__ is not self._wrapper \
                or any(first.__call__ is not self._wrapper for first in self._first):
            return
        if self._entrance is None:
            self._entrance = native.module.Entrance(self._agent.native, kind, self._original, self._wrapper,
                                              types.MethodType)
        self._handed = True
        for first in self._first:
            first.__call__ = self._entrance
        kind.__call__ = self._original

    def take_back(self):
        """Wraps all modules again."""
        if not self._handed:
            return
        self._handed = False
        for first in self._first:
            if vars(first).get("__call__") is self._entrance:
                del first.__call__
        if torch.nn.Module.__call__ is self._original:
            torch.nn.Module.__call__ = self._wrapper
        else:  # somebody has wrapped it meanwhile
            self.install()

    def missed(self):
        """Counts a backward pass without a forward pass before it. In some programs there is never one."""
        count, known = self._missed
        self._missed = (count + 1 if known == len(self._first) else 1, len(self._first))

    # ---- roots ----

    def add_root(self, module, name):
        """Names a module and all below it, unless it has a name; its parameters become nodes. Returns its name."""
        known = self._find(module)
        if known is not None:
            return known.path
        base, count = name, 1
        while name in self._roots and self._roots[name]() is not None:
            name = "%s_%d" % (base, count)
            count += 1
        self._roots[name] = weakref.ref(module)
        self._agent.reporter.scopes.clear()
        for path, child, holder, place in members.paths(module, name):
            known = self._place(child, path, holder, place)
            self._agent.reporter.parameters.add_module(child, known)
        for known in members.again(module, self._find):
            self._agent.reporter.parameters.add_names(known)
        self._agent.library.gradb_publish(self._agent.handle)
        return name

    def discover(self, optimizer):
        """Names the modules that the optimizer trains, found in the variables of the user's frames. A module that makes
        its optimizer itself (`model.configure_optimizers()`) is the root, not its parts."""
        wanted = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}

        def is_new(value):
            return issubclass(type(value), torch.nn.Module) and self._find(value) is None and any(
                id(parameter) in wanted for parameter in value.parameters())

        for frame in stack.user_frames(2):
            holder = frame.f_locals.get("self")
            if is_new(holder):
                self.add_root(holder, variables.name_of(holder) or type(holder).__name__)
            for name, value in variables.of_frame(frame):
                if is_new(value):
                    self.add_root(value, name)

    def adopt(self):
        """Names the modules in the user's frames whose methods run without a call of the module."""
        for frame in stack.user_frames(2):
            holder = frame.f_locals.get("self")
            if isinstance(holder, torch.nn.Module) and self._find(holder) is None:
                self.add_root(holder, variables.name_of(holder) or type(holder).__name__)

    def reach(self, parameter):
        """(PATH/KEY, Held) by which the program reaches a parameter now; the Held is None where its module has none;
        (None, None): no named module contains it."""
        for name, root in self.roots().items():
            for path, module, holder, place in members.paths(root, name):
                known = self._place(module, path, holder, place)
                for key, held, place in members.parameters_of(module):
                    if held is parameter:
                        return "%s/%s" % (path, key), members.Held(known, held, *place)
        return None, None

    def _place(self, module, path, holder, place):
        """The members.Known of a module; a new one is named after where it is, and so is one that has moved."""
        known = self._find(module)
        if known is None or known.path != path and known.now()[0] is not module:
            known = self._known[id(module)] = members.Known(module, path, self._find(holder), place)
            self.paths.clear()
            self._agent.reporter.graph.classes.of[path] = type(module).__name__
        return known

    def _put_below(self, before, module):
        """The members.Known of a module that was added to the one with the path `before`; None: it is not there."""
        for known in list(self._known.values()):
            parent = known.ref() if known.path == before else None
            for name, child, place in members.held_by(parent) if parent is not None else ():
                if child is module:
                    path = before if members.is_wrapper(parent, name) else before + "/" + name
                    return self._place(module, path, parent, place)
        return None

    def place_of(self, parameter):
        """PATH/KEY of a parameter that the running module contains now, but not when it was named: gathered from all
        ranks, or a replacement. None: the module does not contain it."""
        path = self.path()
        for known in self._known.values():
            module = known.ref() if path and known.path == path else None
            for key, held in module._parameters.items() if module is not None else ():
                if held is parameter:
                    return "%s/%s" % (path, key)
        return None

    def _find(self, module):
        known = self._known.get(id(module))
        return known if known is not None and known.ref() is module else None

    # ---- the path ----

    def catch_up(self):
        """Watching begins: finds the path of this thread."""
        self.local.path = self._path_at(sys._getframe(1))

    def _path_at(self, frame):
        """The path according to the stack, from that frame outwards."""
        inside = []
        while frame is not None:
            if frame.f_code is self._code:
                inside.append(frame.f_locals[self._self])
            frame = frame.f_back
        if inside and self._find(inside[-1]) is None:
            self._add_called(inside[-1])
        path = ""
        for module in reversed(inside):
            path = self._below(path, module, self._find(module))
        return path

    def _enter(self, module, before, begins):
        """The path inside a module that is called while `before` is the path; begins: a forward pass begins with it."""
        known = self._find(module)
        if not before:
            if known is None:
                self._add_called(module)
                known = self._known[id(module)]
            self.local.site = None
            if module.training:
                known.trains = True
            self.local.evaluates = not module.training and (known.trains or not torch.is_grad_enabled())
            self._agent.evaluation.called(module, known, begins)
            if begins and module.training and self._agent.native is not None:
                self._agent.native.outermost(known.ref, known.path, EVALUATION + "/" + known.path)
                if type(module) is not torch.nn.Module and len(self._first) < _MAX_FIRST:
                    self._first.add(type(module))
        return self._below(before, module, known)

    def _below(self, before, module, known):
        """The path of a module that was called while `before` was the path. known: its members.Known, or None."""
        if known is None:
            known = self._put_below(before[len(EVALUATION) + 1:] if self.local.evaluates else before, module)
        if known is None:  # made inside a forward pass: it has no name
            return before + "/" + type(module).__name__
        if not _is_opaque(module):
            self.paths[id(module)] = known.ref, known.path, EVALUATION + "/" + known.path
        return EVALUATION + "/" + known.path if self.local.evaluates else known.path

    def _add_called(self, module):
        self.adopt()
        if self._find(module) is None:
            self.add_root(module, variables.name_of(module) or type(module).__name__)






_opaque = {}  # class of modules -> whether the inside of all of them is hidden


def _is_opaque(module):
    """Whether its inside cannot be watched: scripted and compiled modules."""
    kind = type(module)
    found = _opaque.get(kind)
    if found is None:
        found = _opaque[kind] = issubclass(kind, torch.jit.ScriptModule) or kind.__name__ == "OptimizedModule"
    return found or module.__dict__.get("_compiled_call_impl") is not None  # getattr could run the program's code


