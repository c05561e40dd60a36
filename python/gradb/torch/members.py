# SPDX-License-Identifier: MIT
"""What modules contain (children, parameters, buffers), and what the program finds there now."""
import weakref

import torch

from .. import native
from . import values
from .swapping import Ref

_WRAPPED = frozenset(("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"))
_PARALLEL = (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)
_DEEPEST = 32     # levels of a module that is found again
_LOOKED_AT = 256  # items of a user's container that are searched for modules or parameters


class Known:
    """A module with a name. path: its name; trains: it was called in training mode as the outermost module; learns: it
    was trained in evaluation mode; frozen: no optimizer trained it when there were that many; holder, place: the Known
    that contains it, and where in it; None for a root."""
    __slots__ = ("ref", "path", "trains", "learns", "frozen", "holder", "place")

    def __init__(self, module, path, holder=None, place=None):
        self.ref = weakref.ref(module)
        self.path = path
        self.trains = self.learns = False
        self.frozen = -1
        self.holder = holder
        self.place = place

    def chain(self, place):
        """(weak reference to a module, ATTRIBUTE, KEY of its member), from this module up to the root."""
        known = self
        while known is not None:
            yield (known.ref, *place)
            known, place = known.holder, known.place

    def now(self):
        """(the module that the program finds at the path now, whether its root exists)."""
        if self.holder is None:
            module = self.ref()
            return module, module is not None
        holder, has_root = self.holder.now()
        module = _held_at(holder, self.place) if holder is not None else None
        if not isinstance(module, torch.nn.Module):
            return None, has_root
        return module if module is self.ref() else _unwrapped(module), has_root


class Held:
    """A parameter or buffer of a module. Called, it returns what is there now: another tensor when the program has
    replaced it or a module above it, None when it was removed."""
    __slots__ = ("_known", "_tensor", "_place", "_chain")

    def __init__(self, known, tensor, *place):
        self._known = known
        self._tensor = Ref(tensor)
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
        return tensor if module is self._known.ref() else None  # functional_call and sharding replace it for a while


def _in_place(held, chain):
    """Whether each of the modules exists and contains the previous one; the first contains `held`. See Known.chain.
    False also where a module is wrapped, or its container is a list."""
    for ref, attribute, key in chain:
        holder = ref()
        table = vars(holder).get(attribute) if holder is not None else None
        if not isinstance(table, dict) or table.get(key) is not held:
            return False
        held = holder
    return True


in_place = native.module.in_place if native.module is not None else _in_place


def parameters_of(module):
    """(name, parameter, its place) of the module's own parameters, and of those in its plain lists and dicts."""
    for key, parameter in module._parameters.items():
        if parameter is not None:
            yield key, parameter, ("_parameters", key)
    yield from _loose(module, torch.nn.Parameter)


def paths(module, path):
    """(path, module, the module that contains it, at which place) of a module and all below it, each once."""
    seen, waiting = {id(module)}, [(path, module, None, None)]
    while waiting:
        path, parent, holder, place = waiting.pop()
        yield path, parent, holder, place
        for name, child, place in reversed(list(held_by(parent))):
            if id(child) not in seen:
                seen.add(id(child))
                waiting.append((path if is_wrapper(parent, name) else path + "/" + name, child, parent, place))


def again(module, known_of):
    """A Known of each module that the root also contains elsewhere, with its other path. known_of: returns that of a
    module with a name."""
    waiting = [(known_of(module), False)]
    while waiting:
        known, repeated = waiting.pop()
        parent = known.ref()
        if repeated:
            yield known
        below = [(name, child, ("_modules", name)) for name, child in parent._modules.items() if child is not None]
        for name, child, place in reversed(below + list(_loose(parent, torch.nn.Module))):
            first = not repeated and known_of(child) is not None and known_of(child).holder is known \
                and known_of(child).place == place
            if first:
                waiting.append((known_of(child), False))
            elif known.path.count("/") < _DEEPEST:  # a module may contain itself
                path = known.path if is_wrapper(parent, name) else known.path + "/" + name.replace("/", "_")
                waiting.append((Known(child, path, known, place), True))


def held_by(module):
    """(name, module, its place) of its children, and of modules in its plain lists and dicts."""
    for name, child in module.named_children():
        yield name.replace("/", "_"), child, ("_modules", name)
    yield from _loose(module, torch.nn.Module)


def _held_at(module, place):
    """The member at that place; None when there is none."""
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


def is_wrapper(parent, name):
    return name in _WRAPPED or (name == "module" and isinstance(parent, _PARALLEL + _averaged))


def _unwrapped(module):
    """The module inside modules that only wrap it."""
    while module is not None:
        inner = next((child for name, child in module._modules.items() if is_wrapper(module, name)), None)
        if inner is None:
            break
        module = inner
    return module


def _averaged_type():
    try:
        from torch.optim.swa_utils import AveragedModel
        return (AveragedModel,)
    except ImportError:
        return ()


_averaged = _averaged_type()
