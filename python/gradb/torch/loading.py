# SPDX-License-Identifier: MIT
"""What load_state_dict is given: a module's own tensors, or keys that do not fit. Most states are loaded before the
process begins to train and is attached: what was wrong with those is kept here."""
import functools

import torch

from . import stack, values

_MOST = 16

earlier = []  # (kind, where, numbers) of what was loaded before the process was attached


def shares(first, second):
    """Whether two tensors are the same numbers in the same memory."""
    if first is second:
        return True
    if type(first) not in values.PLAIN or type(second) not in values.PLAIN or first.layout is not torch.strided \
            or second.layout is not torch.strided or first.device != second.device or first.numel() == 0:
        return False
    try:
        return first.data_ptr() == second.data_ptr() != 0 and first.shape == second.shape \
            and first.stride() == second.stride()
    except RuntimeError:
        return False


def own_tensors(module, state_dict):
    """The number of tensors, if all that a module is about to be given is its own memory; else 0."""
    own = dict(module.named_parameters())
    own.update(module.named_buffers())
    learns = any(one.requires_grad for one in own.values())
    alike = learns and all(name in state_dict and shares(tensor, state_dict[name]) for name, tensor in own.items())
    return len(own) if alike else 0


def is_fresh(module):
    """Whether its parameters have not been written since they were initialised."""
    return all(values.version_of(one) <= 1 for one in module.parameters())


def misfit(module, state_dict, keys):
    """Of a state that was loaded with strict=False: how many keys of parameters fit, and how many would under a longer
    or shorter name. None: all fit."""
    own = {path + "." * bool(path) + name: one for path, part in module.named_modules()
           for name, one in part._parameters.items() if one is not None}
    missing = [name for name in keys.missing_keys if name in own]
    if not missing or not any(one.requires_grad for one in own.values()):
        return None
    renamed = list(_renamed(missing, keys.unexpected_keys, own, state_dict))
    given, wanted = renamed[0] if renamed else ((keys.unexpected_keys or [None])[0], missing[0])
    return dict(module=type(module).__name__, tensors=len(own), matched=len(own) - len(missing), missing=len(missing),
                given=len(state_dict), renamed=len(renamed), given_key=given, wanted_key=wanted)


def _renamed(missing, unexpected, own, state_dict):
    """(a key of the state, that of the module), which differ in the beginning of the name only."""
    for wanted in missing:
        for given in unexpected:
            alike = given.endswith("." + wanted) or wanted.endswith("." + given)
            if alike and getattr(state_dict[given], "shape", None) == own[wanted].shape:
                yield given, wanted
                break


def noting(original):
    """Module.load_state_dict, which notes in `earlier` what is wrong."""
    @functools.wraps(original)
    def load_state_dict(module, state_dict, *args, **kwargs):
        own = _contained(own_tensors, module, state_dict)
        fresh = own and _contained(is_fresh, module)
        keys = original(module, state_dict, *args, **kwargs)
        _contained(_note, module, state_dict, keys, own if fresh else 0)
        return keys
    return load_state_dict


def _contained(function, *args):
    try:
        return function(*args)
    except Exception:  # a fault of ours must not reach the user's code
        return None


def _note(module, state_dict, keys, own):
    unfit = misfit(module, state_dict, keys) if getattr(keys, "missing_keys", None) else None
    place = stack.shown(stack.frames(2)) if (own or unfit) and len(earlier) < _MOST else None
    if place is not None:
        where = {"file": place[0].co_filename, "line": place[1]}
        if own:
            earlier.append(("own-copy", where, dict(how="load_state_dict()", module=type(module).__name__, tensors=own,
                                                    times=1, step=1, fresh=True)))
        if unfit:
            earlier.append(("loaded-state", where, unfit))
