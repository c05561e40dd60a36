# SPDX-License-Identifier: MIT
"""Which module runs: a path of names per thread, kept by wrapping nn.Module.__call__.

A root module is named by the user's variable, attribute or list that holds it, its children by their names in it.
Levels that only wrap (DataParallel, DistributedDataParallel, FSDP, compiled modules) are left out, so that names
are those of the plain model. What a module does in evaluation, while it also trains, is under `eval/`: the names
of the training are the same with and without it.

While nobody looks at operators nobody asks for the path, and there is one wrapper to go through for each module of
each pass. So the path is that of the outermost module then; where looking begins inside of it, the modules that it
has got to are found on the stack. While steps are idle (see Agent.step_began) not even that is needed: nn.Module has
its own __call__ again, and only the classes of the modules that forward passes begin with have one of ours.
"""
import sys
import threading
import types
import weakref

import torch

from .. import native
from . import regions, stack, values
from .graph import EVALUATION

_WRAPPED = frozenset(("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"))
_PARALLEL = (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)
_LOOKED_AT = 256  # items of a container of the user's that are searched for a value
_MAX_FIRST = 32   # classes of modules that forward passes begin with
_MAX_MISSED = 3   # backward passes without a forward pass before, after which all modules are heard of for good


class _Known:
    """A module that was seen: its path; trains: it was called in training mode as the outermost one. holder: the
    _Known that it was found in, at that place of it; None for a root."""
    __slots__ = ("ref", "path", "trains", "holder", "place")

    def __init__(self, module, path, holder=None, place=None):
        self.ref = weakref.ref(module)
        self.path = path
        self.trains = False
        self.holder = holder
        self.place = place

    def chain(self, place):
        """(weak reference to a module, ATTRIBUTE, KEY of what it holds), from the one with it up to the root."""
        known = self
        while known is not None:
            yield (known.ref, *place)
            known, place = known.holder, known.place

    def now(self):
        """The module that the program reaches by the path now, and whether its root is there."""
        if self.holder is None:
            module = self.ref()
            return module, module is not None
        holder, has_root = self.holder.now()
        module = _held_at(holder, self.place) if holder is not None else None
        if not isinstance(module, torch.nn.Module):
            return None, has_root
        return module if module is self.ref() else _unwrapped(module), has_root


class Held:
    """A parameter or buffer of a module, called for what it is now: another one when the program has put that, or
    another module, in its place, and None when it has taken it out."""
    __slots__ = ("_known", "_tensor", "_place", "_chain")

    def __init__(self, known, tensor, *place):
        self._known = known
        self._tensor = weakref.ref(tensor)
        self._place = place
        self._chain = tuple(known.chain(place))

    def __call__(self):
        tensor = self._tensor()
        if tensor is not None and in_place(tensor, self._chain):
            return tensor
        module, has_root = self._known.now()
        if module is None:
            return None if has_root else tensor
        held = _held_at(module, self._place)
        if held is tensor:
            return tensor
        if type(held) in values.PLAIN and (tensor is None or type(tensor) in values.PLAIN) \
                and (self._place[0] == "_buffers" or type(held) is torch.nn.Parameter):
            return held
        return tensor if module is self._known.ref() else None  # functional_call and sharding put others in for a time


class _Local(threading.local):
    """Of each thread. path: of the module that runs, see above; site: of the outermost one, None while nobody has
    asked for it; evaluates: that one does."""
    path = ""
    site = None
    evaluates = False


class Modules:
    """Installed once; `path()` is the scope of what runs in this thread, while operators are looked at."""

    def __init__(self, agent):
        self._agent = agent
        self.local = _Local()
        self._known = {}  # id(module) -> _Known
        self._roots = {}  # name -> weak reference
        self._original = None
        self._wrapper = None
        self._code = None      # of the function on the stack for each module that runs; its first argument is `_self`
        self._self = ""
        self._first = set()    # classes of the modules that forward passes have begun with
        self._missed = (0, 0)  # how many were not heard of one after the other, and how many classes there were then
        self._entrance = None  # what stands in those classes while steps are idle
        self._handed = False   # it does

    def path(self):
        """The scope of the module that runs in this thread; "" outside of all."""
        return self.local.path

    def site(self):
        """Where the program has called what runs in this thread: the outermost module, or outside of all the
        function of torch itself. See stack.site."""
        local = self.local
        if not local.path:
            return stack.site(2)
        if local.site is None:
            local.site = stack.site(2, self._code)
        return local.site

    def name_of(self, module):
        """The path of a module that was seen, or None."""
        known = self._find(module)
        return known.path if known is not None else None

    def roots(self):
        """name -> module, of all roots that are there."""
        found = {name: reference() for name, reference in self._roots.items()}
        return {name: module for name, module in found.items() if module is not None}

    def install(self):
        """Wraps nn.Module.__call__."""
        original = torch.nn.Module.__call__
        local, agent, steps, place = self.local, self._agent, self._agent.steps, self._path_at
        has_gradients, frame = torch.is_grad_enabled, sys._getframe
        is_nested = agent.native.is_nested if agent.native is not None else lambda: False
        is_outermost = agent.native.is_outermost if agent.native is not None else lambda module: False

        def __call__(module, *args, **kwargs):
            if regions.is_compiling():
                return original(module, *args, **kwargs)
            if is_nested():
                try:
                    return original(module, *args, **kwargs)
                finally:
                    if agent.wanted:  # now
                        local.path = place(frame(1))
            if is_outermost(module):
                try:
                    return original(module, *args, **kwargs)
                finally:
                    local.path = ""
            if agent.dead:
                agent.leave()
                return original(module, *args, **kwargs)
            before = agent.wanted
            begins = not steps.forward and has_gradients()
            if begins or (agent.words.armed or agent.overflow is not None) and not agent.looking:
                agent.module_called()
                begins = begins and steps.forward and agent.is_training_thread()
            if not agent.wanted:
                if local.path:
                    try:
                        return original(module, *args, **kwargs)
                    finally:
                        if agent.wanted:  # now
                            local.path = place(frame(1))
            elif not before:
                local.path = place(frame(1))
            before = local.path
            try:
                local.path = self._enter(module, before, begins)
            except Exception:  # names are a service: the module runs without
                local.path = before
            try:
                if agent.looking and _is_opaque(module):
                    return agent.telling.run_opaque(original, module, args, kwargs)
                return original(module, *args, **kwargs)
            finally:
                local.path = before

        self._original, self._wrapper, self._entrance = original, __call__, None
        plain = isinstance(original, types.FunctionType) and original.__code__.co_argcount > 0
        self._code = (original if plain else __call__).__code__
        self._self = self._code.co_varnames[0]
        torch.nn.Module.__call__ = __call__

    def remove(self):
        """Takes the wrapper off, unless somebody wrapped after us."""
        self.take_back()
        if self._wrapper is not None and torch.nn.Module.__call__ is self._wrapper:
            torch.nn.Module.__call__ = self._original
        self._wrapper = None

    # ---- idle steps ----

    def hand_over(self):
        """From now on only those modules are heard of that forward passes begin with."""
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
        """From now on all modules are heard of."""
        if not self._handed:
            return
        self._handed = False
        for first in self._first:
            if vars(first).get("__call__") is self._entrance:
                del first.__call__
        if torch.nn.Module.__call__ is self._original:
            torch.nn.Module.__call__ = self._wrapper
        else:  # somebody has wrapped what was there
            self.install()

    def missed(self):
        """No forward pass was heard of before a backward pass. Where it is always so there is none to be heard of."""
        count, known = self._missed
        self._missed = (count + 1 if known == len(self._first) else 1, len(self._first))

    # ---- roots ----

    def add_root(self, module, name):
        """Names a module and all below it, unless it has a name; its parameters become nodes. The name."""
        known = self._find(module)
        if known is not None:
            return known.path
        base, count = name, 1
        while name in self._roots and self._roots[name]() is not None:
            name = "%s_%d" % (base, count)
            count += 1
        self._roots[name] = weakref.ref(module)
        for path, child, holder, place in _paths(module, name):
            known = self._place(child, path, holder, place)
            self._agent.telling.add_module(child, known)
        self._agent.library.gradb_publish(self._agent.handle)
        return name

    def discover(self, optimizer):
        """Finds the modules that the optimizer trains in the variables of the user's frames. One that makes its
        optimizer itself (`model.configure_optimizers()`) is the root, not what it is made of."""
        wanted = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}

        def is_new(value):
            return isinstance(value, torch.nn.Module) and self._find(value) is None and any(
                id(parameter) in wanted for parameter in value.parameters())

        for frame in stack.user_frames(2):
            holder = frame.f_locals.get("self")
            if is_new(holder):
                self.add_root(holder, variable_of(holder) or type(holder).__name__)
            for name, value in _variables(frame):
                if is_new(value):
                    self.add_root(value, name)

    def adopt(self):
        """Names the modules of the user's frames whose methods run without having been called as modules."""
        for frame in stack.user_frames(2):
            holder = frame.f_locals.get("self")
            if isinstance(holder, torch.nn.Module) and self._find(holder) is None:
                self.add_root(holder, variable_of(holder) or type(holder).__name__)

    def reach(self, parameter):
        """PATH/KEY by which the program reaches a parameter now, and its Held, if its module can have one; (None,
        None): by no module that has a name."""
        for name, root in self.roots().items():
            for path, module, holder, place in _paths(root, name):
                known = self._place(module, path, holder, place)
                for key, held, place in parameters_of(module):
                    if held is parameter:
                        return "%s/%s" % (path, key), Held(known, held, *place)
        return None, None

    def _place(self, module, path, holder, place):
        """The _Known of a module; one that came later is called by where it is."""
        known = self._find(module)
        if known is None:
            known = self._known[id(module)] = _Known(module, path, self._find(holder), place)
        return known

    def _put_below(self, before, module):
        """The _Known of a module that was put into the one that has that path; None: it is not there."""
        for known in list(self._known.values()):
            parent = known.ref() if known.path == before else None
            for name, child, place in _held_by(parent) if parent is not None else ():
                if child is module:
                    return self._place(module, before if _is_wrapper(parent, name) else before + "/" + name, parent,
                                       place)
        return None

    def place_of(self, parameter):
        """PATH/KEY of a parameter that the module which runs has now and that it was not named with: a part of it
        put together from all ranks, or a new one in the old one's place. None: the module has none such."""
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
        """Operators are looked at from now on: where does this thread stand?"""
        self.local.path = self._path_at(sys._getframe(1))

    def _path_at(self, frame):
        """The path by what is on the stack from that frame outwards."""
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
        """The path in a module that is called where that of `before` runs; begins: a forward pass does with it."""
        known = self._find(module)
        if not before:
            if known is None:
                self._add_called(module)
                known = self._known[id(module)]
            self.local.site = None
            if module.training:
                known.trains = True
            self.local.evaluates = not module.training and (known.trains or not torch.is_grad_enabled())
            if begins and module.training and self._agent.native is not None:
                self._agent.native.outermost(known.ref, known.path, EVALUATION + "/" + known.path)
                if type(module) is not torch.nn.Module and len(self._first) < _MAX_FIRST:
                    self._first.add(type(module))
        return self._below(before, module, known)

    def _below(self, before, module, known):
        """The path of a module that was called where that of `before` runs. known: its _Known, or None."""
        if known is None:
            known = self._put_below(before, module)
        if known is None:  # made inside a forward: it has no name of its own
            return before + "/" + type(module).__name__
        return EVALUATION + "/" + known.path if self.local.evaluates else known.path

    def _add_called(self, module):
        self.adopt()
        if self._find(module) is None:
            self.add_root(module, variable_of(module) or type(module).__name__)


def _is_wrapper(parent, name):
    return name in _WRAPPED or (name == "module" and isinstance(parent, _PARALLEL + _averaged))


def _unwrapped(module):
    """What is inside of what only wraps."""
    while module is not None:
        inner = next((child for name, child in module._modules.items() if _is_wrapper(module, name)), None)
        if inner is None:
            break
        module = inner
    return module


def _paths(module, path):
    """(path, module, the one that holds it, at which place) of a module and all below it, each once."""
    seen, waiting = {id(module)}, [(path, module, None, None)]
    while waiting:
        path, parent, holder, place = waiting.pop()
        yield path, parent, holder, place
        for name, child, place in reversed(list(_held_by(parent))):
            if id(child) not in seen:
                seen.add(id(child))
                waiting.append((path if _is_wrapper(parent, name) else path + "/" + name, child, parent, place))


def _held_by(module):
    """(name, module, its place) of its children, and of what its plain lists and dicts hold."""
    for name, child in module.named_children():
        yield name.replace("/", "_"), child, ("_modules", name)
    yield from _loose(module, torch.nn.Module)


def parameters_of(module):
    """The same of its parameters."""
    for key, parameter in module._parameters.items():
        if parameter is not None:
            yield key, parameter, ("_parameters", key)
    yield from _loose(module, torch.nn.Parameter)


def in_place(held, chain):
    """Whether each of the modules is there, and holds the one before it, the first of them `held`: see _Known.chain.
    False where a module is wrapped, or its container is a list."""
    for ref, attribute, key in chain:
        holder = ref()
        table = vars(holder).get(attribute) if holder is not None else None
        if not isinstance(table, dict) or table.get(key) is not held:
            return False
        held = holder
    return True


if native.module is not None:
    in_place = native.module.in_place


def _held_at(module, place):
    """What is held there now; None when nothing is."""
    try:
        return module.__dict__[place[0]][place[1]]
    except (LookupError, TypeError):
        return None


def _loose(module, kind):
    """(ATTRIBUTE/KEY, item, its place) of the items of a kind in a module's plain lists, tuples and dicts."""
    for name, held in list(vars(module).items()):
        if name.startswith("_") or not isinstance(held, (list, tuple, dict)):
            continue
        items = held.items() if isinstance(held, dict) else enumerate(held)
        for key, item in list(items)[:_LOOKED_AT]:
            if isinstance(item, kind):
                yield "%s/%s" % (name.replace("/", "_"), str(key).replace("/", "_")), item, (name, key)


# ---- the user's names ----

def _variables(frame):
    """(name, value) of a frame's variables, of the attributes of its `self`, and of their containers' items."""
    for names in (frame.f_locals, frame.f_globals):
        for name, value in list(names.items()):
            if name.startswith("_"):
                continue
            if name == "self":
                if not isinstance(value, torch.Tensor):
                    for key, item in _attributes(value):
                        yield key, item
                        yield from _items(key, item)
            else:
                yield name, value
    for name, value in list(frame.f_locals.items()):
        if not name.startswith("_") and name != "self":
            yield from _items(name, value)


def _attributes(value):
    held = getattr(value, "__dict__", None)
    if isinstance(held, dict):
        for name, item in list(held.items())[:_LOOKED_AT]:
            if not name.startswith("_"):
                yield name, item
        if isinstance(value, torch.nn.Module):
            for name, item in list(value.named_children()):
                yield name, item


def _items(name, value):
    if type(value) is dict:
        pairs = list(value.items())[:_LOOKED_AT]
    elif type(value) in (list, tuple):
        pairs = list(enumerate(value[:_LOOKED_AT]))
    else:
        return
    for key, item in pairs:
        if isinstance(key, (str, int)):
            yield "%s/%s" % (name, key), item


def variable_of(value):
    """The name of the user's variable that holds it, looked for from the innermost frame outwards. A module that
    stands in a list or dict is named by that: the variable may be a loop's."""
    for frame in stack.user_frames(2):
        found = [name for name, held in _variables(frame) if held is value]
        if found:
            listed = [name for name in found if "/" in name] if isinstance(value, torch.nn.Module) else []
            return (listed or found)[0].replace(" ", "_")
    return None


def _averaged_type():
    try:
        from torch.optim.swa_utils import AveragedModel
        return (AveragedModel,)
    except ImportError:
        return ()


_opaque = {}  # class of modules -> whether the inside of all of them cannot be seen


def _is_opaque(module):
    """Whether its inside cannot be seen: scripted and compiled modules."""
    kind = type(module)
    found = _opaque.get(kind)
    if found is None:
        found = _opaque[kind] = issubclass(kind, torch.jit.ScriptModule) or kind.__name__ == "OptimizedModule"
    return found or module.__dict__.get("_compiled_call_impl") is not None  # a getattr would be the program's


_averaged = _averaged_type()
