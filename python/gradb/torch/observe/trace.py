# SPDX-License-Identifier: MIT
"""How the tensors of a step were made: which operator, of what, at which line. Shared by watchers; see `of`."""

import torch
from torch.nn.parameter import is_lazy

from .. import stack, values
from ..swapping import Ref

# Operators that pass on the numbers of their first argument, in another form.
SAME = frozenset((
    "view", "reshape", "squeeze", "unsqueeze", "flatten", "unflatten", "contiguous", "clone", "to", "float", "double",
    "half", "bfloat16", "type", "type_as", "transpose", "permute", "movedim", "swapaxes", "t", "T", "mT", "view_as",
    "reshape_as", "squeeze_", "unsqueeze_", "cpu", "cuda", "detach", "data", "alias", "transpose_", "as_tensor",
    "requires_grad_", "expand", "expand_as", "narrow_copy", "ravel", "adjoint", "identity"))
_COUNTED = frozenset(("arange", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "parameter"))
_MOST = 65536   # records of a step
_SAMPLE = 1 << 20  # values of a tensor that are read at most


class Made:
    """How a tensor was made. name: the operator, "parameter", or "" for what came from outside; node: its graph.Node or
    None; args, kwargs: of the call, with a Made for each tensor; shape: of the first result; grad: it needs a gradient;
    module: the path of the module in which it ran; number: the order of the calls; turned: of `1 - x`, whose arguments
    are in the other order; fixed: made of parameters, buffers and counted numbers only."""
    __slots__ = ("name", "node", "args", "kwargs", "shape", "grad", "module", "number", "integer", "turned", "fixed")

    def __init__(self, name, node, args, kwargs, tensor, module, number):
        self.name, self.node, self.args, self.kwargs = name, node, args, kwargs
        self.shape = () if is_lazy(tensor) else tuple(tensor.shape)
        self.grad = tensor.requires_grad
        self.integer = not (tensor.is_floating_point() or tensor.is_complex())
        self.module, self.number = module, number
        self.turned = False
        parents = () if name in _COUNTED else self.parents()
        self.fixed = all(one.fixed for one in parents) if parents else name in _COUNTED or not name and node is not None

    def given(self, index, name, default=None):
        """The argument at that position, or of that name."""
        return self.args[index] if len(self.args) > index else self.kwargs.get(name, default)

    def parents(self):
        """The Made of each tensor that it was made of."""
        found = []
        for value in (*self.args, *self.kwargs.values()):
            if isinstance(value, Made):
                found.append(value)
            elif isinstance(value, (list, tuple)):
                found.extend(one for one in value if isinstance(one, Made))
        return found

    def first(self):
        """The Made of the first tensor, or None."""
        return next(iter(self.parents()), None)

    def source(self, through=SAME):
        """The one that made the numbers: operators of `through` are passed."""
        made = self
        for _ in range(64):
            before = made.first() if made.name in through else None
            if before is None:
                return made
            made = before
        return made

    def where(self):
        """{"file", "line", "node"} of the call; {} where they are unknown."""
        if self.node is None:
            return {}
        place = stack.shown(self.node.stack)
        found = {} if place is None else {"file": place[0].co_filename, "line": place[1]}
        found["node"] = self.node.name
        return found

    def node_name(self):
        """The name of its node, or ""."""
        return self.node.name if self.node is not None else ""


class Trace:
    """The records of the running step, and those of data that lives longer."""

    def __init__(self, observation):
        self.agent = observation.agent
        self.step = -1
        self._made = {}     # id(tensor) -> (weak reference, Made)
        self._call = None   # the Call that was recorded last
        self._last = None   # its Made
        self.count = 0

    def begins(self, step):
        """A step begins: what needs a gradient is forgotten."""
        if step != self.step:
            self.step, self._call, self._last = step, None, None
            self._made = {key: held for key, held in self._made.items()
                          if held[0]() is not None and (not held[1].grad or held[1].name == "parameter")}

    def see(self, call):
        """The Made of a call that has returned, or None. May be asked several times for a call."""
        if call is not self._call:
            self._call, self._last = call, self._note(call)
        return self._last

    def _note(self, call):
        result = call.result
        if call.name == "setitem" and call.args:
            result = call.args[0]
        results = [result] if isinstance(result, torch.Tensor) else []
        if isinstance(result, (tuple, list)):
            for one in result:
                results.extend(part for part in (one if isinstance(one, (tuple, list)) else (one,))
                               if isinstance(part, torch.Tensor))
        if not results or len(self._made) >= _MOST:
            return None
        args, kwargs = self._recorded(call.args), {key: self._value(one) for key, one in call.kwargs.items()}
        origin = self.agent.graph.producer(results[0])
        self.count += 1
        made = Made(call.name, origin[2] if origin is not None else None, args, kwargs, results[0], call.module(),
                    self.count)
        made.turned = getattr(call.function, "__name__", "").startswith("__r") and call.name != "round"
        if not call.grad:
            made.grad = False
        for one in results:
            self._made[id(one)] = (Ref(one), made)
        return made

    def _recorded(self, items):
        return [self._value(one) for one in items]

    def _value(self, value):
        if isinstance(value, torch.Tensor):
            return self.of(value)
        if type(value) in (list, tuple) and len(value) <= 256:
            return self._recorded(value)
        return value

    def of(self, tensor):
        """The Made of a tensor."""
        held = self._made.get(id(tensor))
        if held is not None and held[0]() is tensor:
            return held[1]
        node = self.agent.graph.holder(tensor)
        leaf = tensor.requires_grad and tensor.is_leaf or type(tensor) is torch.nn.Parameter
        if node is None:
            origin = self.agent.graph.producer(tensor)
            node = origin[2] if origin is not None else None
        made = Made("parameter" if leaf else "", node, [], {}, tensor, "", 0)
        if len(self._made) < _MOST:
            self._made[id(tensor)] = (Ref(tensor), made)
        return made


def ancestors(made, most=4096, grads=True):
    """All that a value was made of, itself included, as a set; of many, `most` (and a few more). grads: only what has
    a gradient."""
    seen, waiting = {made: None}, [made]
    while waiting and len(seen) < most:
        for one in waiting.pop().parents():
            if one not in seen and (one.grad or not grads):
                seen[one] = None
                waiting.append(one)
    return seen.keys()


def of(observation):
    """The Trace that the watchers of an observation share."""
    trace = getattr(observation, "trace", None)
    if trace is None:
        trace = observation.trace = Trace(observation)
    return trace


def read(tensor, most=_SAMPLE):
    """The values of a tensor as a flat one of float64 on the CPU, the first ones of many; None: unreadable or empty."""
    try:
        flat = values.readable(tensor)
    except (values.NoValue, RuntimeError):
        return None
    if flat.numel() == 0 or flat.is_complex():
        return None
    return flat.reshape(-1)[:most].to("cpu", torch.float64)


def copied(tensor, most=_SAMPLE):
    """A copy of a small tensor in its shape, on the CPU; None where there is none."""
    try:
        plain = values.readable(tensor)
    except (values.NoValue, RuntimeError):
        return None
    return plain.to("cpu", copy=True) if 0 < plain.numel() <= most and not plain.is_complex() else None


def print_of(tensor):
    """A fingerprint: equal for equal values. None: unreadable. Sums with weights, so that it is cheap anywhere."""
    flat = read(tensor)
    if flat is None:
        return None
    weights = torch.arange(1, flat.numel() + 1, dtype=torch.float64).mul_(0.6180339887).frac_()
    return (tuple(tensor.shape), float(flat.sum()), float((flat * weights).sum()), float(flat[0]), float(flat[-1]))
