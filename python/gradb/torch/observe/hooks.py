# SPDX-License-Identifier: MIT
"""What the program's own hooks do to gradients: those of modules (register_full_backward_hook), of parameters and of
other tensors (register_hook). In observed steps each is called through a wrapper that compares what it receives with
what it returns."""
import functools
import linecache
import statistics

import torch

from .. import values
from . import Watcher, here, parameter_name, piece
from .lines import only_line
from .opaque import refusing

_MOST_HOOKS = 256
_MOST_CALLS = 64   # of one hook that are kept
_SAMPLE = 1024     # elements that show a common factor
_REGISTERS = r"register_(full_)?backward_(pre_)?hook\(|register_hook\("


class _Of:
    """What is known of the hooks with one code."""

    def __init__(self, kind, name):
        self.kind = kind     # "module", "parameter" or "tensor"
        self.name = name     # of the first module or parameter
        self.names = {name}
        self.calls = self.changed = self.zeroed = 0
        self.factors = []    # by which a call multiplied all elements; None: not by one
        self.shares = []     # norm after, over the norm before
        self.where = {}
        self.made = {}


class Hooks(Watcher):
    """Puts wrappers around the program's hooks in observed steps."""

    def __init__(self, observation):
        super().__init__(observation)
        self._known = {}   # code of a hook -> _Of
        self._put = []     # (dict of hooks, its key, hook, wrapper)
        self._own = torch.Tensor.register_hook
        self._wrapper = self._wrap_register(self._own)
        torch.Tensor.register_hook = self._wrapper

    def _wrap_register(self, own):
        @functools.wraps(own)
        def register_hook(tensor, hook):
            try:
                if self.observation.observes and self.agent.is_training_thread() and _is_users(hook) \
                        and type(tensor) is torch.Tensor:
                    hook = self._measured(hook, "tensor", "", here())
            except Exception:  # never the training's problem
                pass
            return own(tensor, hook)
        return register_hook

    def closes(self):
        """Puts everything back."""
        self._take_back()
        if torch.Tensor.register_hook is self._wrapper:
            torch.Tensor.register_hook = self._own

    def begins(self, step):
        """Wraps the hooks that are there."""
        self._take_back()
        for path, root in self.agent.modules.roots().items():
            for name, module in root.named_modules():
                full = path + ("/" + name.replace(".", "/") if name else "")
                for held in (module._backward_hooks, getattr(module, "_backward_pre_hooks", None)):
                    self._put_into(held, "module", full)
            for parameter in root.parameters():
                if parameter._backward_hooks:
                    self._put_into(parameter._backward_hooks, "parameter", parameter_name(self.agent, parameter))

    def ends(self, step):
        """Takes the wrappers away."""
        self._take_back()

    def _put_into(self, held, kind, name):
        for key, hook in list((held or {}).items()):
            if len(self._put) < _MOST_HOOKS and callable(hook) and _is_users(hook):
                wrapper = self._measured(hook, kind, name, {})
                held[key] = wrapper
                self._put.append((held, key, hook, wrapper))

    def _take_back(self):
        for held, key, hook, wrapper in self._put:
            if held.get(key) is wrapper:
                held[key] = hook
        self._put = []

    # ---- a call ----

    def _measured(self, hook, kind, name, made):
        known = self._known.get(_code(hook))
        if known is None:
            known = self._known[_code(hook)] = _Of(kind, name)
            known.where, known.made = _line_of(hook), made
        known.names.add(name)

        @functools.wraps(hook, updated=())
        def called(*args):
            before = self._apart(_before, args)
            result = hook(*args)
            if before:
                self._apart(self._note, known, before, result, args)
            return result
        return called

    def _apart(self, function, *args):
        """A function of ours, apart from the program's operators; None where it fails."""
        if not self.observation.observes:
            return None
        try:
            with self.agent.own_moment(), values.outside_training(), refusing():
                return function(*args)
        except Exception:
            return None

    def _note(self, known, before, result, args):
        """One call: what it received, and what the gradients are after it."""
        after = _tensors(_changeable(args) if result is None else result)
        if len(known.shares) >= _MOST_CALLS or len(after) != len(before):
            return
        old, new = sum(norm ** 2 for norm, _ in before) ** 0.5, sum(_norm(one) ** 2 for one in after) ** 0.5
        if not 0 < old < float("inf") or new != new:
            return
        known.calls += 1
        known.changed += abs(new - old) > 1e-6 * old or any(
            not torch.equal(sample, _sample(one)) for (_, sample), one in zip(before, after))
        known.zeroed += new == 0
        known.shares.append(new / old)
        known.factors.append(_factor([sample for _, sample in before], [_sample(one) for one in after]))

    # ---- evidence ----

    def evidence(self):
        """One piece for each hook that changes gradients."""
        found = []
        for known in self._known.values():
            if not known.changed:
                continue
            factors = [one for one in known.factors if one is not None]
            steady = len(factors) == known.calls and max(factors) - min(factors) <= 1e-3 * max(map(abs, factors))
            made = known.made or only_line(_REGISTERS)
            found.append(piece("gradient-hook", known.where or made, hook=known.kind, name=known.name or None,
                               count=len(known.names), calls=known.calls, changed=known.changed, zeroed=known.zeroed,
                               factor=statistics.median(factors) if steady else None,
                               share=statistics.median(known.shares), also=[made] if made else None))
        return found


def _is_users(hook):
    code = _code(hook)
    return hasattr(code, "co_filename") and not any(part in code.co_filename for part in (
        "site-packages", "dist-packages", "/gradb/", "<frozen")) and not getattr(hook, "gradb", False)


def _code(hook):
    """The code of a hook, through partial() and methods; the hook itself where there is none."""
    for _ in range(4):
        hook = getattr(hook, "func", None) or getattr(hook, "__func__", None) or getattr(hook, "__wrapped__", hook)
    code = getattr(hook, "__code__", None) or getattr(getattr(type(hook), "__call__", None), "__code__", None)
    return code if code is not None else hook


def _line_of(hook):
    """The last `return` of a hook, or its first line."""
    code = _code(hook)
    lines = {line for *_, line in code.co_lines() if line} if hasattr(code, "co_lines") else set()
    for line in sorted(lines, reverse=True):
        if linecache.getline(code.co_filename, line).strip().startswith("return "):
            return {"file": code.co_filename, "line": line}
    return {"file": code.co_filename, "line": max(lines) if code.co_name == "<lambda>" and lines
            else code.co_firstlineno}


def _tensors(value):
    items = value if isinstance(value, (tuple, list)) else (value,)
    return [one for one in items if isinstance(one, torch.Tensor) and one.is_floating_point()]


def _changeable(args):
    """The gradients that a hook may change: hook(gradient), hook(module, gradients, ...)."""
    return args[0] if len(args) == 1 else args[1]


def _before(args):
    """[(norm, first elements)] of them."""
    return [(_norm(one), _sample(one).clone()) for one in _tensors(_changeable(args))]


def _norm(tensor):
    return float(torch.linalg.vector_norm(tensor.detach().float()))


def _sample(tensor):
    return tensor.detach().reshape(-1)[:_SAMPLE].double()


def _factor(before, after):
    """By what all elements were multiplied, or None."""
    old, new = torch.cat(before), torch.cat(after)
    if old.shape != new.shape or not bool(old.any()):
        return None
    factor = float((old * new).sum() / (old * old).sum())
    return factor if bool(((new - factor * old).abs() <= 1e-5 * new.abs().max() + 1e-12).all()) else None
