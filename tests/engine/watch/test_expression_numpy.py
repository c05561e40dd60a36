# SPDX-License-Identifier: GPL-3.0-or-later
"""Random expressions over statistics, against the same tree evaluated here: numbers from numpy, logic of
three values."""
import math
import unittest

import harness
import numpy as np
from judge import EMPTY, INF, NAN, NO_FIGURE, NO_PREVIOUS, NO_VALUE, Batch, Value, mean

OUTCOME = {True: "hit", False: "none", None: "unchecked"}


def tensor_figures(x, prev):
    """Name -> (number, errors) of a tensor that may hold anything."""
    bad = (NAN if np.isnan(x).any() else 0) | (INF if np.isinf(x).any() else 0) | (0 if len(x) else EMPTY)
    known = {"count": len(x), "nan": np.isnan(x).sum(), "inf": np.isinf(x).sum(), "zero": (x == 0).sum(),
             "nonfinite": len(x) - np.isfinite(x).sum(), "positive": (np.isfinite(x) & (x > 0)).sum(),
             "negative(cur)": (np.isfinite(x) & (x < 0)).sum()}
    found = {name: (float(number), 0) for name, number in known.items()}
    values = {"min": x.min, "max": x.max, "mean": lambda: mean(x), "abs_mean": lambda: mean(np.abs(x)),
              "spread": lambda: x.max() - x.min(), "max_abs": lambda: np.abs(x).max(),
              "norm": lambda: math.sqrt(math.fsum(x * x)), "sum_sq": lambda: math.fsum(x * x),
              "max_min": lambda: x.max() - x.min(), "min(cur)": x.min}
    for name, value in values.items():
        found[name] = (0.0, bad) if bad else (float(value()), 0)
    lost = bad & ~EMPTY
    share = float((x == 0).sum()) * 100 / len(x) if len(x) else 0.0
    found["zero_percentage"] = (0.0, lost) if lost else (share, 0)
    against = {"abs_mean(cur-prev)": lambda: mean(np.abs(x - prev)), "max_abs( cur - prev )": lambda: np.abs(x - prev).max(),
               "abs_mean(prev)": lambda: mean(np.abs(prev)), "mean(cur-prev)": lambda: mean(x - prev),
               "norm(prev)": lambda: math.sqrt(math.fsum(prev * prev)),
               "norm(cur-prev)": lambda: math.sqrt(math.fsum((x - prev) ** 2)),
               "update_ratio": lambda: mean(np.abs(x - prev)) / (mean(np.abs(prev)) + 1e-9)}
    for name, value in against.items():
        error = bad | (NO_PREVIOUS if prev is None else 0)
        found[name] = (0.0, error) if error else (float(value()), 0)
    return found


def known(number):
    return (0.0, NO_FIGURE) if math.isnan(number) else (float(number), 0)


def guarded(function, *operands):
    try:
        return float(function(*operands))
    except OverflowError:
        return math.inf
    except ValueError:
        return -math.inf if function in (math.log, math.log10) and operands[0] == 0 else math.nan


def divide(a, b):
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


FUNCTIONS = {"abs": abs, "sqrt": math.sqrt, "log": math.log, "log10": math.log10, "exp": math.exp}
ARITHMETIC = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": divide}
COMPARISONS = {">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "<": lambda a, b: a < b,
               "<=": lambda a, b: a <= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b}
# how tightly what a rule writes is bound
OR, AND, NOT, COMPARE, SUM, PRODUCT, UNARY, ATOM = range(8)


class Tree:
    """Random text and its value; `values` is what names stand for."""

    def __init__(self, rng, values):
        self.rng = rng
        self.values = values

    def pick(self, options):
        return options[self.rng.integers(len(options))]

    def make(self, depth):
        """(text, binding, (number, errors))"""
        if depth == 0:
            return self.leaf()
        return self.pick([self.logic, self.logic, self.negation, self.compare, self.compare, self.arithmetic,
                          self.minus, self.function, self.smaller])(depth - 1)

    def inside(self, depth, binding):
        """An operand: in parentheses where it must be, and now and then where not."""
        text, own, value = self.make(depth)
        if own < binding or self.rng.random() < 0.1:
            text = f"({text})" if self.rng.random() < 0.5 else f"( {text} )"
        return text, value

    def leaf(self):
        if self.rng.random() < 0.4:
            text = self.pick(["0", "1", "2.5", ".5", "3.", "1e-9", "1E3", "7", "infinity"])
            return text, ATOM, (math.inf if text == "infinity" else float(text), 0)
        name = self.pick(list(self.values))
        return name, ATOM, self.values[name]

    def logic(self, depth):
        is_or = self.rng.random() < 0.5
        binding = OR if is_or else AND
        left, (a, a_error) = self.inside(depth, binding)
        right, (b, b_error) = self.inside(depth, binding + 1)
        sign = self.pick([" || ", "||", " or "] if is_or else [" && ", "&&", " and "])
        text = left + sign + right
        for number, error in ((a, a_error), (b, b_error)):
            if not error and (number != 0) == is_or:
                return text, binding, (float(is_or), 0)
        error = a_error | b_error
        return text, binding, (0.0, error) if error else (float(not is_or), 0)

    def negation(self, depth):
        text, (a, error) = self.inside(depth, NOT)
        return self.pick(["!", "not ", "! "]) + text, NOT, (0.0, error) if error else (float(a == 0), 0)

    def two(self, depth, binding, sign, function, left_binding):
        left, (a, a_error) = self.inside(depth, left_binding)
        right, (b, b_error) = self.inside(depth, binding + 1)
        error = a_error | b_error
        return f"{left} {sign} {right}", binding, (0.0, error) if error else known(float(function(a, b)))

    def compare(self, depth):
        sign = self.pick(list(COMPARISONS))
        return self.two(depth, COMPARE, sign, COMPARISONS[sign], SUM)

    def arithmetic(self, depth):
        sign = self.pick(list(ARITHMETIC))
        binding = SUM if sign in "+-" else PRODUCT
        return self.two(depth, binding, sign, ARITHMETIC[sign], binding)

    def minus(self, depth):
        text, (a, error) = self.inside(depth, UNARY)
        return "-" + text, UNARY, (0.0, error) if error else known(-a)

    def function(self, depth):
        name = self.pick(list(FUNCTIONS))
        text, _, (a, error) = self.make(depth)
        return f"{name}({text})", ATOM, (0.0, error) if error else known(guarded(FUNCTIONS[name], a))

    def smaller(self, depth):
        name = self.pick(["min", "max"])
        left, _, (a, a_error) = self.make(depth)
        right, _, (b, b_error) = self.make(depth)
        error = a_error | b_error
        function = min if name == "min" else max
        return f"{name}({left}, {right})", ATOM, (0.0, error) if error else known(function(a, b))


class Expressions(unittest.TestCase):
    def setUp(self):
        self.batch = Batch(self)

    def test_random(self):
        rng = np.random.default_rng(11)
        plain, other = [-1.5, 0, 3.25, 2], [1, 0.25, 3.25, -8]
        outcomes = set()
        for values, prev, loss in ((plain, other, 2.5), (plain, None, None), ([1, math.nan, 0, 2], other, 0.0),
                                   ([1, math.inf, 0, 2], None, -1.0), ([], [], None), ([0, 0], [0, 0], math.inf)):
            cur = Value("float64", values)
            self.batch.cur(cur)
            self.batch.prev(Value("float64", prev) if prev is not None else None)
            self.batch.tell("scalar" if loss is None else f"scalar {loss!r}")
            self.batch.tell("at 7 7")
            names = tensor_figures(cur.x, None if prev is None else np.array(prev, dtype=float))
            names.update(loss=(0.0, NO_VALUE) if loss is None else (loss, 0), step=(7.0, 0), age=(0.0, 0),
                         momentum=(0.0, NO_VALUE))
            names['"loss"'] = names["loss"]
            for _ in range(2000):
                text, _, (number, error) = Tree(rng, names).make(int(rng.integers(1, 5)))
                outcome = OUTCOME[None if error else number != 0]
                outcomes.add(outcome)
                self.batch.expr(text, outcome, error)
        self.assertEqual(len(outcomes), 3)
        self.batch.run()

    def test_thresholds(self):
        for dtype in ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64"):
            cur = Value(dtype, [1, 0, 1, 1])
            self.batch.cur(cur)
            self.batch.prev(Value(dtype, [0, 0, 1, 1]))
            for text, number in (("mean", 0.75), ("max", 1.0), ("zero / count", 0.25),
                                 ("abs_mean(cur-prev)", 0.25), ("max_abs(cur-prev)", 1.0), ("nan + inf", 0.0),
                                 ("abs_mean(prev)", 0.5)):
                for limit in (number, np.nextafter(number, -1), np.nextafter(number, 9)):
                    for sign, holds in COMPARISONS.items():
                        self.batch.expr(f"{text} {sign} {float(limit)!r}", "hit" if holds(number, limit) else "none")
        self.batch.run()


if __name__ == "__main__":
    harness.main()
