# SPDX-License-Identifier: MIT
"""The attributes of a node that explain its values: the arguments of its first call that `why` needs, and whether a
gradient cannot come back through it."""
import math
import os

import torch

from . import stack

_FUNCTIONS = os.path.join("autograd", "function.py")
_MAX_ITEMS = 64  # items of a list of arguments that are searched
_OVER_AXES = frozenset(("softmax", "log_softmax", "mean", "sum", "std", "var", "amax", "amin", "max", "min",
                        "logsumexp"))
_EXCHANGES = frozenset(("transpose", "swapaxes", "swapdims", "permute"))


def _padding(value):
    sizes = value if isinstance(value, (tuple, list)) else (value,)
    return "0" if all(size == 0 for size in sizes) else "some"


# operator -> (attribute, position and keyword of the argument, how to format it)
_ARGUMENTS = {
    "batch_norm": ("training", 5, "training", str), "instance_norm": ("training", 5, "use_input_stats", str),
    "group_norm": ("groups", 1, "num_groups", str),
    "layer_norm": ("rank", 1, "normalized_shape", lambda shape: "%d" % len(shape)),
    "conv1d": ("padding", 4, "padding", _padding), "conv2d": ("padding", 4, "padding", _padding),
    "conv3d": ("padding", 4, "padding", _padding)}


def of_call(operator, args, kwargs):
    """The arguments that explain a value: the reduction of a loss, the value of a fill, the axes."""
    reduction = kwargs.get("reduction") if kwargs else None
    found = [("reduction", reduction)] if isinstance(reduction, str) else []
    fill = _infinity(args) or _infinity(list(kwargs.values()) if kwargs else ())
    if fill:
        found.append(("fill", "%g" % fill))
    axes = _axes_of(operator, args, kwargs)
    if axes:
        found.append(("dim", ",".join("%d" % axis for axis in axes)))
    name, position, key, form = _ARGUMENTS.get(operator, (None, 0, None, None))
    if name is not None:
        value = kwargs[key] if kwargs and key in kwargs else args[position] if len(args) > position else None
        if value is not None:
            found.append((name, form(value)))
    return found


def _axes_of(operator, args, kwargs):
    """The axes that an operator reduces or exchanges."""
    if operator in _OVER_AXES:
        given = kwargs["dim"] if kwargs and "dim" in kwargs else args[1] if len(args) > 1 else None
    elif operator in _EXCHANGES:
        given = kwargs["dims"] if kwargs and "dims" in kwargs else \
            tuple(kwargs.values()) if kwargs else args[1] if len(args) == 2 else args[1:]
    else:
        return ()
    axes = given if isinstance(given, (tuple, list)) else (given,)
    return axes if all(isinstance(axis, int) and not isinstance(axis, bool) for axis in axes) else ()


def _infinity(given, depth=0):
    """The first infinite number among the arguments, which is then intended; else 0."""
    for value in given if len(given) <= _MAX_ITEMS else ():
        if isinstance(value, float) and math.isinf(value):
            return value
        if isinstance(value, (list, tuple)) and depth < 2:
            found = _infinity(value, depth + 1)
            if found:
                return found
    return 0


def lost_gradient(given, node, graph):
    """Says that no gradient comes back through the node: gradients are disabled though an input needs one, or an input
    is x.data. In an evaluation that is as it should be."""
    if node.aside:
        return []
    if torch.is_grad_enabled():
        return [("grad", "data")] if any(graph.is_bare(tensor) for tensor in given) else []
    if stack.runs_in(_FUNCTIONS):  # the forward() of a hand-written Function, whose backward() is another matter
        return []
    return [("grad", "off")] if any(tensor.requires_grad for tensor in given) else []
