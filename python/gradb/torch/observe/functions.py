# SPDX-License-Identifier: MIT
"""Hand-written backward passes: each custom autograd.Function is compared with finite differences once, in float64, on
a copy of its first arguments, on a thread of its own."""
import inspect
import linecache
import threading
import time

import torch
from torch._C import _ImperativeEngine
from torch.autograd import Function
from torch.overrides import TorchFunctionMode

from .. import values
from . import Watcher, here, piece

_MOST_FUNCTIONS = 16
_MOST_ELEMENTS = 1 << 16  # of all arguments together
_SAMPLED = 48             # elements of an argument whose derivative is measured
_SECONDS = 1.0            # for one function
_EPSILON = 1e-5           # of an element's magnitude, at least 1
_EXACT = 1e-3             # an element agrees up to this share of its derivative
_MAKERS = frozenset((torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn, torch.linspace, torch.eye))
_FRAMEWORK = ("torch", "math", "builtins", "numpy", "_operator", "operator", "functools", "typing")


class _Case:
    """The arguments of a function's first call."""
    __slots__ = ("kind", "args", "needs", "where", "found", "away")

    def __init__(self, kind, args, needs, where, away):
        self.kind = kind
        self.args = args
        self.needs = needs
        self.where = where
        self.away = away
        self.found = None


class Functions(Watcher):
    """Records the first call of each function, and checks it when the step is over."""

    def __init__(self, observation):
        super().__init__(observation)
        self._replaced = {}  # class -> (its own `forward` or None, our wrapper)
        self._cases = {}     # class -> _Case
        self._begins = 0
        self._replace()

    def begins(self, _step):
        """Finds functions that were defined since."""
        self._begins += 1
        if self._begins <= 8:
            self._replace()

    def _replace(self):
        waiting = [Function]
        while waiting:
            for kind in waiting.pop().__subclasses__():
                waiting.append(kind)
                if kind not in self._replaced and len(self._replaced) < 4 * _MOST_FUNCTIONS and _is_users(kind):
                    self._put(kind)

    def _put(self, kind):
        own = vars(kind).get("forward")
        forward = kind.forward
        record, gains = self._record, _gains
        styled = _is_apart(kind)

        def wrapper(*args, **kwargs):
            if not kwargs and (kind not in self._cases or gains(self._cases[kind], args if styled else args[1:])):
                try:
                    record(kind, args if styled else args[1:])
                except Exception:  # never the training's problem
                    self._cases[kind] = None
            return forward(*args, **kwargs)

        wrapper.__wrapped__ = forward
        wrapper.__name__ = "forward"
        self._replaced[kind] = own, wrapper
        kind.forward = staticmethod(wrapper)

    def closes(self):
        """Puts the functions' own `forward` back."""
        for kind, (own, wrapper) in self._replaced.items():
            now = vars(kind).get("forward")
            if getattr(now, "__func__", None) is wrapper:
                if own is None:
                    del kind.forward
                else:
                    kind.forward = own
        self._replaced = {}

    def _record(self, kind, args):
        if not self.observation.on or not self.agent.is_training_thread():
            return
        with self.agent.own_moment(), values.outside_training():
            tensors = [one for one in args if isinstance(one, torch.Tensor)]
            needs = [_needs(one) for one in args]
            if not any(needs):  # under no_grad(): a later call may have one
                return
            away = any(one.device.type != "cpu" for one in tensors)
            if len(self._cases) >= _MOST_FUNCTIONS or sum(one.numel() for one in tensors) > _MOST_ELEMENTS \
                    or not all(type(one) in values.PLAIN and one.layout is torch.strided for one in tensors) \
                    or any(isinstance(one, (list, tuple, dict)) and _has_tensors(one) for one in args) \
                    or away and not _is_plain_python(kind) or _is_distributed():
                self._cases[kind] = None
                return
            self._cases[kind] = _Case(kind, [_copy(one) for one in args], needs, here(), away)

    def ends(self, _step):
        """Checks what was recorded in this step."""
        for case in self._cases.values():
            if case is not None and case.args is not None:
                thread = threading.Thread(target=_check_apart, args=(case,), name="gradb-check", daemon=True)
                thread.start()
                thread.join()
                case.args = None

    def evidence(self):
        """One piece for each function that could be compared."""
        return [one for case in self._cases.values() if case is not None and case.found for one in case.found]


def _gains(case, args):
    """Whether a call has more gradients to check than the one that was recorded, such as a second layer's."""
    return case is not None and not all(case.needs) and len(args) == len(case.needs) and \
        sum(map(_needs, args)) > sum(case.needs)


def _needs(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.requires_grad


def _is_users(kind):
    module = kind.__module__ or ""
    return module.split(".", 1)[0] not in ("torch", "torchvision", "torchaudio", "functorch", "gradb") \
        and "forward" in dir(kind) and callable(getattr(kind, "forward", None)) \
        and "backward" in dir(kind) and kind.backward is not Function.backward


def _is_apart(kind):
    """Whether its `forward` is given no context, but its `setup_context` is."""
    return getattr(kind, "setup_context", None) is not getattr(Function, "setup_context", None)


def _is_plain_python(kind):
    """Whether its code calls nothing but PyTorch: a kernel for a device must not be given memory of another."""
    for function in (inspect.unwrap(kind.forward), inspect.unwrap(kind.backward)):
        code, scope = getattr(function, "__code__", None), getattr(function, "__globals__", {})
        if code is None:
            return False
        for name in code.co_names:
            used = scope.get(name)
            module = getattr(used, "__module__", None) or getattr(used, "__name__", "") or type(used).__module__
            if used is not None and str(module).split(".", 1)[0] not in _FRAMEWORK:
                return False
    return True


def _is_distributed():
    group = torch.distributed
    return group.is_available() and group.is_initialized() and group.get_world_size() > 1


def _has_tensors(value, depth=0):
    if isinstance(value, torch.Tensor):
        return True
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return depth < 4 and any(_has_tensors(one, depth + 1) for one in items)


def _copy(value):
    if not isinstance(value, torch.Tensor):
        return value
    copy = value.detach().cpu() if value.device.type != "cpu" else value.detach().clone()
    return copy.double() if copy.is_floating_point() else copy


# ---- the check ----

def _check_apart(case):
    state = torch.get_rng_state()
    anomaly = torch.is_anomaly_enabled()
    try:
        if anomaly:
            torch.autograd.set_detect_anomaly(False)
        with _Double():
            case.found = _check(case)
    except Exception:  # it does not run in float64, or on copies
        case.found = None
    finally:
        if anomaly:
            torch.autograd.set_detect_anomaly(True)
        torch.set_rng_state(state)


class _Double(TorchFunctionMode):
    """What a function computes in float32 on purpose, or makes of that type, is of float64 on this thread."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = {key: torch.float64 if value is torch.float32 else value for key, value in (kwargs or {}).items()}
        if func in _MAKERS:
            kwargs.setdefault("dtype", torch.float64)
        if func is torch.Tensor.float:
            func = torch.Tensor.double
        return func(*(torch.float64 if one is torch.float32 else one for one in args), **kwargs)


class _Run:
    """Calls a function again and again with the same random numbers."""

    def __init__(self, case):
        self.case = case
        self.weights = None

    def outputs(self, args):
        torch.manual_seed(0)
        made = self.case.kind.apply(*args)
        return [one for one in (made if isinstance(made, (tuple, list)) else (made,))
                if isinstance(one, torch.Tensor) and one.is_floating_point()]

    def value(self, args):
        """The weighted sum of all outputs."""
        with torch.no_grad():
            made = self.outputs([one.clone() if isinstance(one, torch.Tensor) else one for one in args])
            return float(sum((one * weight).sum() for one, weight in zip(made, self.weights)))

    def gradients(self, args, factor):
        """The gradients that backward() makes, by argument: a tensor, or None."""
        leaves = [one.clone().requires_grad_() if need else one.clone() if isinstance(one, torch.Tensor) else one
                  for one, need in zip(args, self.case.needs)]
        # a leaf must not be written in place: each is given as a result
        given = [one * 1 if need else one for one, need in zip(leaves, self.case.needs)]
        made = [one for one in self.outputs(given) if one.requires_grad]
        if not made:
            return None
        wanted = tuple(leaf for leaf, need in zip(leaves, self.case.needs) if need)
        weights = tuple(weight * factor for weight in self.weights[:len(made)])
        found = _ImperativeEngine().run_backward(tuple(made), weights, False, False, wanted, True, False)
        found = list(found)
        return [found.pop(0) if need else None for need in self.case.needs]


def _check(case):
    run, args = _Run(case), case.args
    with torch.no_grad():
        first = run.outputs([one.clone() if isinstance(one, torch.Tensor) else one for one in args])
    if not first or any(one.dtype != torch.float64 for one in first):
        return None  # it computes in another type: differences would be of its rounding
    generator = torch.Generator().manual_seed(1)
    run.weights = [0.5 + torch.rand(one.shape, dtype=torch.float64, generator=generator) for one in first]
    made, twice = run.gradients(args, 1.0), run.gradients(args, 2.0)
    if made is None:
        return None
    ends = time.monotonic() + _SECONDS
    checked = [(index, _compare(run, args, index, made[index], twice[index], ends))
               for index, need in enumerate(case.needs) if need]
    checked = [(index, one) for index, one in checked if one is not None]
    surrogate = any(one["invented"] for _, one in checked)
    alike = _is_identity(args, first)
    found = []
    for index, one in checked:
        one.update(surrogate=surrogate, identity=alike, swapped=_swapped(checked, index, made))
        found.append(piece("function-gradient", _where(case), function=case.kind.__name__,
                           input=_name(case.kind, index), also=[case.where] if case.where else None, **one))
    return found


def _compare(run, args, index, made, twice, ends):
    """How the gradient of an argument compares with differences, at some elements."""
    flat = args[index].reshape(-1)
    if not flat.numel() or not bool(torch.isfinite(flat).all()):
        return None
    stride = max(1, flat.numel() // _SAMPLED)
    places = list(range(0, flat.numel(), stride))[:_SAMPLED]
    analytic, numeric, smooth = [], [], []
    gradient = None if made is None else made.reshape(-1)
    for place in places:
        slopes = [_slope(run, args, index, place, scale) for scale in (1.0, 0.1)]
        if time.monotonic() > ends:
            break
        numeric.append(slopes[0])
        smooth.append(abs(slopes[0] - slopes[1]) <= 1e-4 * max(abs(slopes[0]), abs(slopes[1]), 1e-3))
        analytic.append(0.0 if gradient is None else float(gradient[place]))
    pairs = [(a, n) for a, n, good in zip(analytic, numeric, smooth) if good and n == n and abs(n) != float("inf")]
    if len(pairs) < 1:
        return None
    size = max(max(abs(n) for _, n in pairs), 1e-12)
    differ = [(a, n) for a, n in pairs if not abs(a - n) <= _EXACT * max(abs(a), abs(n)) + 1e-6 * size]
    ratios = [a / n for a, n in pairs if abs(n) > 1e-6 * size]
    worst = max(differ or pairs, key=lambda pair: abs(pair[0] - pair[1]))
    steady = ratios and max(ratios) - min(ratios) <= 1e-3 * max(abs(one) for one in ratios)
    ignores = gradient is not None and twice is not None and bool((made != 0).any()) and bool(
        torch.allclose(made, twice, rtol=1e-9, atol=0))
    flat = [(a, n) for a, n in pairs if abs(n) <= 1e-6 * size]
    return {"flat": len(flat), "sloped_differ": sum(abs(n) > 1e-6 * size for _, n in differ),
            "checked": len(pairs), "differ": len(differ), "analytic": worst[0], "numeric": worst[1],
            "factor": ratios[0] if steady and differ else None, "ignores": ignores or None,
            "missing": (gradient is None or not bool((gradient != 0).any())) or None,
            "invented": sum(abs(n) <= 1e-9 * max(1.0, abs(a)) and abs(a) > 1e-6 for a, n in pairs)}


def _slope(run, args, index, place, scale):
    flat = args[index].reshape(-1)
    before = float(flat[place])
    step = _EPSILON * max(1.0, abs(before)) * scale
    flat = flat.clone()
    ends = []
    for sign in (1, -1):
        flat[place] = before + sign * step
        ends.append(run.value([flat.reshape(args[index].shape) if at == index else one for at, one in enumerate(args)]))
    return (ends[0] - ends[1]) / (2 * step)


def _is_identity(args, first):
    """Whether it returns an argument as it is: then its backward is there to change the gradient on purpose."""
    return any(isinstance(one, torch.Tensor) and one.dtype == torch.float64 and one.numel() == first[0].numel()
               and torch.equal(one.reshape(-1), first[0].reshape(-1)) for one in args)


def _swapped(checked, index, made):
    """Whether the gradient of this argument is another's."""
    own = dict(checked)[index]
    return (own["differ"] > 0 and any(
        other != index and made[other] is not None and made[index] is not None and one["differ"] > 0
        and abs(own["numeric"] - one["analytic"]) <= 1e-3 * abs(own["numeric"])
        and abs(one["numeric"] - own["analytic"]) <= 1e-3 * abs(one["numeric"]) for other, one in checked)) or None


def _name(kind, index):
    """The name of an argument of `forward`."""
    forward = getattr(kind.forward, "__wrapped__", kind.forward)
    try:
        names = list(inspect.signature(forward).parameters)
    except (TypeError, ValueError):
        return str(index)
    names = names if _is_apart(kind) else names[1:]
    return names[index] if index < len(names) else str(index)


def _where(case):
    """The `return` of its backward, or its first line."""
    code = getattr(inspect.unwrap(case.kind.backward), "__code__", None)  # it may be @once_differentiable
    if code is None:
        return case.where
    lines = {line for *_, line in code.co_lines() if line} if hasattr(code, "co_lines") else {code.co_firstlineno}
    for line in sorted(lines, reverse=True):
        if linecache.getline(code.co_filename, line).strip().startswith("return"):
            return {"file": code.co_filename, "line": line}
    return {"file": code.co_filename, "line": code.co_firstlineno}
