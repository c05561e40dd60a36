# SPDX-License-Identifier: MIT
"""The user's names: which variable, attribute or container item holds a module or a tensor."""
import torch

from . import stack

_LOOKED_AT = 256  # items of a user's container that are searched


def name_of(value):
    """The name of the user's variable that holds a value, searched from the innermost frame outwards. A module in a
    list or dict is named after that, since the variable may be a loop's."""
    for frame in stack.user_frames(2):
        found = [name for name, held in of_frame(frame) if held is value]
        if found:
            listed = [name for name in found if "/" in name] if isinstance(value, torch.nn.Module) else []
            return (listed or found)[0].replace(" ", "_")
    return None


def of_frame(frame):
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
