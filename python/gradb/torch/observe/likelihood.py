# SPDX-License-Identifier: MIT
"""Recognises logarithms of normal densities by their constant, log(sqrt(2 pi)) for each variable."""
import math

_CONSTANT = 0.5 * math.log(2 * math.pi)
_MOST = 256          # operators that are examined
_MOST_VARIABLES = 65536


def normal_constants(loss, parts_of):
    """(the Made that adds or subtracts it, the sign with which it enters the loss) for each such constant. Terms that
    are weighted by data, as in policy gradients, are left out."""
    seen, todo = set(), [(loss, 1)]
    while todo and len(seen) < _MOST:
        made, sign = todo.pop()
        if made in seen or not made.grad:
            continue
        seen.add(made)
        number = _constant_of(made)
        if number is not None and sign:
            yield made, sign if number > 0 else -sign
        parts = [(made.first(), sign, None)] if made.name == "logsumexp" else parts_of(made, sign, None)
        for part, its_sign, factor in parts:
            if hasattr(part, "name") and factor is None:
                todo.append((part, its_sign))


def is_normal(made):
    """Whether it is the logarithm of a normal density, by its last operator."""
    return (_constant_of(made) or 0) < 0


def _constant_of(made):
    """The number that a sum adds, if it is a multiple of the constant; negative: it is subtracted."""
    if made.name not in ("add", "radd", "sub", "rsub", "isub", "iadd", "add_", "sub_"):
        return None
    numbers = [(index, one) for index, one in enumerate(made.args[:2])
               if isinstance(one, (int, float)) and not isinstance(one, bool)]
    if len(numbers) != 1 or not numbers[0][1]:
        return None
    index, number = numbers[0]
    times = abs(number) / _CONSTANT
    if not 1 <= round(times) <= _MOST_VARIABLES or abs(times - round(times)) > 1e-6 * times:
        return None
    subtracted = "sub" in made.name and index == 1 and not made.turned and made.name != "rsub"
    return -number if subtracted else number
