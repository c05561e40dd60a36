# SPDX-License-Identifier: MIT
"""The form of a hand-written loss: what is averaged before it is squared, what is left out, what a softmax is over.
Works on the Made of a step (trace.py)."""
from . import trace

_MEANS = frozenset(("mean", "sum", "nanmean", "nansum"))
_DISTANCES = frozenset(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
_SCALES = trace.SAME | {"div", "mul", "truediv"}
_KEEPS = _SCALES | _MEANS | {"neg", "add", "iadd", "add_", "radd", "sub", "rsub", "stack", "cat", "where"}
_MASKS = frozenset(("mul", "where", "masked_select", "masked_fill", "getitem", "index_select", "imul", "mul_", "div",
                    "masked_fill_", "index_put_", "setitem"))


def is_difference(made):
    """Whether it is an output minus data."""
    made = made.source(trace.SAME | {"div", "mul"})
    if made.name not in ("sub", "rsub"):
        return False
    parents = made.parents()
    return len(parents) == 2 and parents[0].grad != parents[1].grad


def is_even(made):
    """Whether it is a square, or another even power or magnitude, of its first argument."""
    if made.name == "pow":
        power = made.given(1, "exponent")
        return isinstance(power, (int, float)) and power > 0 and power % 2 == 0
    if made.name == "mul":
        parents = made.parents()
        return len(parents) == 2 and parents[0] is parents[1]
    return made.name in ("square", "abs")


def cancelled(loss, seen):
    """(a Made, how): errors of different examples cancel in it, because they are averaged before a power or magnitude
    makes them positive ("difference", "means"), or without one ("signed"); None."""
    for made in seen:
        if is_even(made) and made.first() is not None:
            first = made.first().source(_SCALES)
            if _averages(first) and _pairs_up(first.first()):
                return made, "difference"
            if first.name in ("sub", "rsub") and _of_means(first.parents()):
                return made, "means"
        if made.name in _DISTANCES and _of_means([made.given(0, "input"), made.given(1, "target")]):
            return made, "means"
    made = loss
    for _ in range(16):
        trained = [one for one in made.parents() if one.grad]
        if made.name not in _MEANS | _SCALES | {"neg"} or len(trained) != 1 or any(
                one.shape not in ((), (1,)) for one in made.parents() if not one.grad):
            break
        if made.name in _MEANS and _pairs_up(trained[0]) and trained[0].source(_SCALES).name == trained[0].name:
            return trained[0], "signed"
        made = trained[0]
    return None


def one_sided(loss, parts_of):
    """An error whose sign is kept, where a loss consists of several of them, for different elements, and nothing else,
    and all enter it in one direction: the larger the outputs the smaller it is, or the other way round. None: it does
    not."""
    signs, found, todo, seen = [], None, [(loss, 1)], 0
    while todo and seen < 128:
        made, sign = todo.pop()
        seen += 1
        if not isinstance(made, trace.Made) or not made.grad:
            continue
        inner = made.source(trace.SAME | {"getitem", "masked_select"})
        if inner.name in ("sub", "rsub") and _pairs_up(inner):
            signs.append(sign * (1 if inner.parents()[inner.turned != (inner.name == "rsub")].grad else -1))
            found = found or inner
            continue
        if made.name not in _KEEPS or made.name != "where" and any(
                not one.grad and one.shape not in ((), (1,)) for one in made.parents()):
            return None
        parts = [(part, its) for part, its, _ in parts_of(made, sign, None)]
        if not parts:
            return None
        todo += parts
    return found if len(signs) > 1 and signs[0] and len(set(signs)) == 1 else None


def _pairs_up(made):
    """Whether each element is an output minus its own target."""
    if made is None:
        return False
    made = made.source(_SCALES)
    if not is_difference(made):
        return False
    first, second = made.parents()
    return first.shape == second.shape and not (first.integer and second.integer) and len(first.shape) > 0


def _averages(made):
    """Whether it averages over the first axis of several examples."""
    if not isinstance(made, trace.Made) or made.name not in _MEANS:
        return False
    given = made.first()
    if given is None or not given.shape or given.shape[0] < 2:
        return False
    dim = made.given(1, "dim")
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    return dim is None or any(isinstance(one, int) and one in (0, -len(given.shape)) for one in dims)


def _of_means(pair):
    """Whether it is the mean of an output and that of as many data."""
    if len(pair) != 2 or not all(isinstance(one, trace.Made) for one in pair) or pair[0].grad == pair[1].grad:
        return False
    means = [one.source(_SCALES) for one in pair]
    return all(map(_averages, means)) and means[0].first().shape == means[1].first().shape


def is_masked(seen):
    """Whether elements are left out or weighed on the way to a loss."""
    return any(made.name in _MASKS and any(not one.grad and one.shape not in ((), (1,)) for one in made.parents())
               or made.name == "getitem" for made in seen)


def is_single(made):
    """Whether it is a softmax over an axis of one element."""
    dim = made.given(1, "dim")
    if made.name not in ("softmax", "log_softmax") or not isinstance(dim, int):
        return False
    return -len(made.shape) <= dim < len(made.shape) and made.shape[dim] == 1


def sums_batch(made):
    """Whether a loss is a sum over the examples of a batch."""
    given = made.first() if made.name == "sum" else None
    return given is not None and len(given.shape) > 0 and given.shape[0] > 1 and made.shape == ()
