# SPDX-License-Identifier: GPL-3.0-or-later
"""Every condition and parameter at, just under and just over its threshold, for every dtype, against
numpy in float64. The rules are written down here a second time, from the specification."""
import math
import subprocess
import tempfile
import unittest
import warnings

import harness
import numpy as np
from judge import (COMPARE, DTYPES, EMPTY, FLOATS, INF, NAN, NO_FIGURE, NO_HISTORY, NO_MEMORY, NO_PREVIOUS,
                   NO_VALUE, NOT_CAPTURED, NOT_NUMBERS, TOOL, Batch, Value, figures)

RANGE = {"range_start_inclusive": 0, "range_end_inclusive": 4}
ABOVE = ["abs_mean_gt", "max_gt", "min_gt", "mean_gt"]
BELOW = ["abs_mean_lt", "max_lt", "min_lt", "mean_lt"]
IN_RANGE = ["range_percentage_lt", "range_percentage_gt", "max_min_lt", "max_min_gt"]
TESTS = {
    "WI": ["zero_percentage_ge", "max_gt", "min_lt"], "TZ": ["zero_percentage_ge"],
    "WL": ABOVE, "GL": ABOVE, "TL": ABOVE, "WS": BELOW, "GV": BELOW, "TS": BELOW,
    "WCL": ["abs_mean_update_ratio_gt"], "WCS": ["abs_mean_update_ratio_lt"], "TR": IN_RANGE, "AR": IN_RANGE,
    "CT": ["spread_le"], "UB": ["abs_mean_update_ratio_lt", "abs_mean_update_ratio_gt"], "GR": ["cosine_lt"],
}
NOT_FINITE = ["WO", "GE", "TO", "LN"]
# MindInsight's, but for those that look for NaN and Inf; with no value but the default
SEVENTEEN = {"WI": {}, "TZ": {}, "WL": {"max_gt": 0}, "GL": {"max_gt": 0}, "TL": {"min_gt": -9}, "WS": {"max_lt": 99},
             "GV": {"abs_mean_lt": 99}, "TS": {"mean_lt": 99}, "WCL": {}, "WCS": {}, "WNC": {},
             "TR": {"max_min_gt": 0}, "AR": dict(RANGE, range_percentage_lt=50)}
CHANGE = ["WCL", "WCS", "WNC"]
NOT_NEGATIVE = ["abs_mean_gt", "abs_mean_lt", "abs_mean_update_ratio_gt", "abs_mean_update_ratio_lt", "max_min_gt",
                "spread_le"]

# Sums, means and differences of these are exact in float64, so that thresholds can be met.
EXACT = {
    "bool": ([1, 0, 1, 1, 0, 1, 1, 1], [1, 1, 0, 1, 0, 1, 1, 0]),
    "unsigned": ([3, 0, 7, 12, 5, 0, 9, 4], [2, 1, 7, 8, 5, 0, 16, 4]),
    "signed": ([-3, 0, 7, -12, 5, 0, 9, 4], [-2, 1, 7, -8, 5, 0, 16, -4]),
    "float": ([-1.5, 0, 3.25, -6, 2.5, 0, 4.75, 0.5], [-1, 0.25, 3.25, -8, 2, 0, 5, -0.5]),
}


def exact(dtype):
    kind = ("bool" if dtype == "bool" else "float" if dtype in FLOATS
            else "unsigned" if dtype.startswith("u") else "signed")
    return tuple(Value(dtype, values) for values in EXACT[kind])


def allowed(param, value):
    if "percentage" in param:
        return 0 <= value <= 100
    return value > 0 if param == "max_min_lt" else value >= 0 or param not in NOT_NEGATIVE


def split(param):
    return param.rsplit("_", 1)


class Conditions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")

    def setUp(self):
        self.batch = Batch(self)

    def around(self, condition, param, actual, **extra):
        """At the figure's value, at the next number below and at the next above."""
        op = split(param)[1]
        for limit in (actual, np.nextafter(actual, -math.inf), np.nextafter(actual, math.inf)):
            params = dict(extra, **{param: limit})
            if not allowed(param, limit):
                self.batch.refused(condition, params)
                continue
            outcome = "hit" if COMPARE[op](actual, limit) else "none"
            self.batch.judge(condition, params, outcome, actual=actual)

    def test_manual(self):
        """docs/conditions.md names every condition, parameter, default and figure."""
        text = (harness.SOURCE / "docs" / "conditions.md").read_text()
        ran = subprocess.run([str(TOOL)], input="table\n", capture_output=True, text=True, check=True)
        rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
        lines = [line.split() for line in ran.stdout.splitlines()]
        for _, name, abbreviation, selector, *params in (line for line in lines if line[0] == "condition"):
            row = rows[name]
            self.assertEqual([cell.strip() for cell in row.split("|")][2], abbreviation)
            self.assertIn(selector, row)
            for param in params if abbreviation != "AR" else []:
                param, _, default = param.partition("=")
                self.assertIn(f"`{param}`", row)
                if default:
                    shown = row.split(f"`{param}` (")[1].split(")")[0]
                    self.assertEqual(float(shown), float(default), name)
        figures_told = [line[1] for line in lines if line[0] == "figure"]
        self.assertGreater(len(figures_told), 30)
        for figure in figures_told:
            self.assertIn(f"`{figure}`", text)

    def test_complex(self):
        """Judged by their magnitudes."""
        for dtype in ("complex64", "complex128"):
            value = Value(dtype, [3 + 4j, 0, -5j, 2])
            self.batch.cur(value)
            self.batch.prev(Value(dtype, [3 + 4j, 0, -4j, 2]))
            self.around("TL", "max_gt", 5.0)
            self.around("TS", "abs_mean_lt", 3.0)
            self.around("TZ", "zero_percentage_ge", 25.0)
            self.around("TR", "max_min_gt", 5.0)
            self.around("WCL", "abs_mean_update_ratio_gt", 0.25 / (2.75 + 1e-9))
            self.batch.judge("TO", {}, "none")
            for bad, error in ((complex(1, math.nan), NAN), (complex(math.inf, 1), INF)):
                self.batch.cur(Value(dtype, [bad, 1]))
                self.batch.judge("TO", {}, "hit")
                self.batch.judge("TZ", {}, "unchecked", error)
        self.batch.run()

    def test_thresholds(self):
        for dtype in DTYPES:
            cur, prev = exact(dtype)
            self.batch.cur(cur)
            self.batch.prev(prev)
            known = figures(cur.x, prev.x, 0, 4)
            for condition, params in TESTS.items():
                for param in params:
                    extra = RANGE if param.startswith("range_percentage") else {}
                    self.around(condition, param, known[split(param)[0]], **extra)
        self.assertGreater(self.batch.run(), 13 * 38 * 2)

    def test_defaults(self):
        """Without a test the default is meant: at it and beside it."""
        ones = [1.0] * 8
        self.batch.cur(Value("float32", [0.0] * 8))
        for condition in ("WI", "TZ"):
            self.batch.judge(condition, {}, "hit", actual=100.0)
        self.batch.cur(Value("float32", [0.0] * 7 + [1e-30]))
        for condition in ("WI", "TZ"):
            self.batch.judge(condition, {}, "none", actual=87.5)
        self.batch.prev(Value("float64", ones))
        for change, outcomes in ((1e-8, ("none", "hit", "hit")), (1e-6, ("none", "hit", "none")),
                                 (1e-3, ("none", "none", "none")), (0.2, ("hit", "none", "hit"))):
            self.batch.cur(Value("float64", [1 + change] * 8))
            for condition, outcome in zip(("WCL", "WCS", "UB"), outcomes):
                self.batch.judge(condition, {}, outcome)
        # a condition that has no default can say nothing
        for condition in ("TL", "TS", "TR", "AR", "WL", "WS", "GL", "GV"):
            self.batch.judge(condition, {}, "none")
        self.batch.run()

    def test_both_ends_of_the_band(self):
        self.batch.prev(Value("float64", [1.0] * 4))
        self.batch.cur(Value("float64", [1.5] * 4))
        ratio = 0.5 / (1 + 1e-9)
        for low, high, outcome in ((0.4, 0.6, "none"), (0.6, 0.7, "hit"), (0.1, 0.4, "hit"), (ratio, ratio, "none")):
            self.batch.judge("UB", {"abs_mean_update_ratio_lt": low, "abs_mean_update_ratio_gt": high}, outcome,
                             actual=ratio)
        self.batch.judge("UB", {"abs_mean_update_ratio_lt": 0.4}, "none")  # then the other end is open
        self.batch.judge("UB", {"abs_mean_update_ratio_gt": 0.6}, "none")
        self.batch.run()

    def test_not_finite(self):
        for dtype in FLOATS:
            prev = Value(dtype, [1, 2, 3, 4])
            self.batch.prev(prev)
            for values, error in (([1, math.nan, 3, 4], NAN), ([1, 2, math.inf, 4], INF), ([-math.inf, 2, 3, 4], INF),
                                  ([math.nan, math.inf, -math.inf, 0], NAN | INF), ([math.nan] * 4, NAN),
                                  ([math.inf] * 4, INF)):
                self.batch.cur(Value(dtype, values))
                for condition in NOT_FINITE:
                    self.batch.judge(condition, {}, "hit")
                for condition, params in SEVENTEEN.items():
                    self.batch.judge(condition, params, "unchecked", error)
                for condition in ("CT", "UB", "GR", "DN"):
                    self.batch.judge(condition, {}, "unchecked", error)
                self.batch.judge("GM", {}, "none")
            self.batch.cur(prev)
            for condition in NOT_FINITE:
                self.batch.judge(condition, {}, "none")
        self.batch.run()

    def test_largest_finite_numbers(self):
        """The ends of every type are finite."""
        for dtype, largest in (("float16", 65504.0), ("bfloat16", 3.3895313892515355e38),
                               ("float32", 3.4028234663852886e38), ("float64", 1.7976931348623157e308),
                               ("int64", float(2**63)), ("uint64", float(2**64)), ("int8", 127.0), ("bool", 1.0)):
            value = Value(dtype, [largest]) if dtype in FLOATS else Value(
                dtype, np.array([1 if dtype == "bool" else np.iinfo(dtype).max], dtype=dtype))
            self.batch.cur(value)
            for condition in NOT_FINITE:
                self.batch.judge(condition, {}, "none")
            self.around("TL", "max_gt", largest) if largest < 1e308 else None
        self.batch.run()

    def test_previous_value(self):
        for dtype in DTYPES:
            cur, prev = exact(dtype)
            self.batch.cur(cur)
            others = [None, Value(dtype, prev.x[:4]), Value(dtype, prev.x, shape=(2, 4)), Value(dtype, []),
                      Value("float32" if dtype != "float32" else "float64", prev.x)]
            for other in others:
                self.batch.prev(other)
                for condition in CHANGE + ["UB", "GR"]:
                    self.batch.judge(condition, {}, "unchecked", NO_PREVIOUS)
                self.batch.judge("TL", {"max_gt": 0}, "hit")
        self.batch.cur(Value("float32", [math.nan]))
        for condition in CHANGE:
            self.batch.judge(condition, {}, "unchecked", NAN | NO_PREVIOUS)
        self.batch.run()

    def test_empty(self):
        for dtype in DTYPES:
            for shape in ((0,), (3, 0, 2)):
                empty = Value(dtype, np.zeros(shape))
                self.batch.cur(empty)
                self.batch.prev(empty)
                for condition, params in SEVENTEEN.items():
                    self.batch.judge(condition, params, "unchecked", EMPTY)
                for condition in ("UB", "GR"):
                    self.batch.judge(condition, {}, "unchecked", EMPTY)
                for condition in NOT_FINITE + ["CT", "DN", "FC", "BC", "GM"]:
                    self.batch.judge(condition, {}, "none")
                self.batch.prev()
                self.batch.judge("WNC", {}, "unchecked", EMPTY | NO_PREVIOUS)
        self.batch.run()

    def test_scalar(self):
        for dtype in DTYPES:
            cur, prev = Value(dtype, 1), Value(dtype, 0)
            self.batch.cur(cur)
            self.batch.prev(prev)
            known = figures(cur.x, prev.x, 0, 4)
            for condition, params in TESTS.items():
                for param in params:
                    name = split(param)[0]
                    if known[name] is None:
                        self.batch.judge(condition, {}, "unchecked", NO_FIGURE)
                    elif condition != "CT":
                        extra = RANGE if param.startswith("range_percentage") else {}
                        self.around(condition, param, known[name], **extra)
            self.batch.judge("CT", {}, "none")  # one element alone is no constant
            self.batch.judge("CT", {"spread_le": 5}, "none")
            self.batch.judge("WNC", {}, "none")
        self.batch.run()

    def test_all_zero(self):
        for dtype in DTYPES:
            zero = Value(dtype, [0] * 6)
            self.batch.cur(zero)
            self.batch.prev(zero)
            for condition, params, outcome in (
                    ("TZ", {}, "hit"), ("WI", {}, "hit"), ("CT", {}, "hit"), ("WNC", {}, "hit"), ("WCS", {}, "hit"),
                    ("WCL", {}, "none"), ("UB", {}, "hit"), ("TS", {"abs_mean_lt": 0}, "none"),
                    ("TS", {"abs_mean_lt": 5e-324}, "hit"), ("TL", {"max_gt": 0}, "none"),
                    ("TL", {"max_gt": -5e-324}, "hit"), ("TR", {"max_min_lt": 5e-324}, "hit"), ("TO", {}, "none"),
                    ("DN", {}, "none")):
                self.batch.judge(condition, params, outcome)
            self.batch.judge("GR", {}, "unchecked", NO_FIGURE)  # no direction
        negative = Value("float32", [-0.0, 0.0])
        self.batch.cur(negative)
        self.batch.judge("TZ", {}, "hit", actual=100.0)
        self.batch.run()

    def test_range_ends_are_inside(self):
        for dtype in DTYPES:
            cur, _ = exact(dtype)
            self.batch.cur(cur)
            for lo, hi in ((0, 0), (0, 1), (1, 1), (0.5, 0.5), (float(cur.x.min()), float(cur.x.max())), (50, 60)):
                for low in (lo, np.nextafter(lo, -math.inf), np.nextafter(lo, math.inf)):
                    for high in (hi, np.nextafter(hi, -math.inf), np.nextafter(hi, math.inf)):
                        ends = {"range_start_inclusive": low, "range_end_inclusive": high}
                        if low > high:
                            self.batch.refused("TR", dict(ends, range_percentage_gt=0))
                            continue
                        share = float(((cur.x >= low) & (cur.x <= high)).sum()) * 100 / cur.x.size
                        self.batch.judge("TR", dict(ends, range_percentage_gt=0), "hit" if share > 0 else "none",
                                         actual=share)
                        self.batch.judge("AR", dict(ends, range_percentage_lt=share), "none", actual=share)
        self.batch.run()

    def test_not_changed(self):
        """Every element within atol + rtol |prev|: at the border and on both sides of it."""
        for dtype in DTYPES:
            prev = Value(dtype, [1, 0, 1, 1])
            for cur in (prev, Value(dtype, [1, 0, 1, 0]), Value(dtype, [0, 0, 0, 0])):
                self.batch.cur(cur)
                self.batch.prev(prev)
                for rtol in (0, 0.5, 1 - 1e-8, 1, 2, np.nextafter(1 - 1e-8, 0), np.nextafter(1 - 1e-8, 2)):
                    close = bool((np.abs(cur.x - prev.x) <= 1e-8 + rtol * np.abs(prev.x)).all())
                    self.batch.judge("WNC", {"rtol": rtol}, "hit" if close else "none")
        for dtype in FLOATS:
            for step in (0.25, 2.0**-7):
                self.batch.cur(Value(dtype, [1 + step, -1 - step]))
                self.batch.prev(Value(dtype, [1, -1]))
                border = step - 1e-8
                for rtol in (border, np.nextafter(border, 0), np.nextafter(border, 1), border - 1e-12, border + 1e-12):
                    close = step <= 1e-8 + rtol
                    self.batch.judge("WNC", {"rtol": rtol}, "hit" if close else "none")
        # the default, 1e-5, and near zero, where only the absolute tolerance is left
        self.batch.prev(Value("float64", [1, 0]))
        for values, outcome in (([1 + 0.9e-5, 0], "hit"), ([1 + 1.1e-5, 0], "none"), ([1, 0.9e-8], "hit"),
                                ([1, 1.1e-8], "none"), ([1, 1e-8], "hit"), ([1, np.nextafter(1e-8, 1)], "none")):
            self.batch.cur(Value("float64", values))
            self.batch.judge("WNC", {}, outcome)
        # what was not finite before has changed
        self.batch.cur(Value("float64", [1, 0]))
        self.batch.prev(Value("float64", [1, math.nan]))
        self.batch.judge("WNC", {}, "none")
        self.batch.prev(Value("float64", [1, math.inf]))
        self.batch.judge("WNC", {}, "none")
        self.batch.run()

    def test_clipping(self):
        half, brain = 65504.0, 3.3895313892515355e38
        for condition, limit, dtypes in (("FC", half, ["bfloat16", "float32", "float64"]), ("BC", brain, ["float32", "float64"])):
            for dtype in dtypes:
                if dtype == "bfloat16":
                    inside, outside = 65280.0, 65536.0
                else:
                    inside = limit
                    outside = float(np.nextafter(np.dtype(dtype).type(limit), np.dtype(dtype).type(math.inf)))
                for values, error, share in (([inside, -inside, 0, 1], 0, 0.0), ([outside, 0, 0, 1], 0, 25.0),
                                             ([-outside, outside, 0, 1], 0, 50.0), ([math.inf, 0, 0, 1], 0, 25.0),
                                             ([-math.inf, outside, 2, 1], 0, 50.0), ([math.nan, 0, 0, outside], NAN, None),
                                             ([math.nan, math.inf, 0, 1], NAN, None)):
                    self.batch.cur(Value(dtype, values))
                    if error:
                        self.batch.judge(condition, {}, "unchecked", error)
                        continue
                    self.batch.judge(condition, {}, "hit" if share > 0 else "none", actual=share)
                    self.around(condition, "clip_percentage_gt", share)
        for dtype in DTYPES:
            cur, _ = exact(dtype)
            self.batch.cur(cur)
            limit = float(np.abs(cur.x).max())
            for bound in (limit, np.nextafter(limit, 0), np.nextafter(limit, 1e9)):
                share = float((np.abs(cur.x) > bound).sum()) * 100 / cur.x.size
                self.batch.judge("FC", {"limit": bound}, "hit" if share else "none", actual=share)
        self.batch.cur(Value("float16", [half, -half]))
        self.batch.judge("FC", {}, "none", actual=0.0)
        self.batch.refused("FC", {"limit": 0})
        self.batch.run()

    def test_denormals(self):
        for dtype, tiny in (("float16", 2.0**-14), ("bfloat16", 2.0**-126), ("float32", 2.0**-126),
                            ("float64", 2.0**-1022)):
            self.batch.cur(Value(dtype, [tiny, -tiny, 0, 1]))
            self.batch.judge("DN", {"denormal_percentage_gt": 0}, "none", actual=0.0)
            self.batch.cur(Value(dtype, [tiny / 2, -tiny, 0, -tiny / 4]))
            self.around("DN", "denormal_percentage_gt", 50.0)
            self.batch.judge("DN", {}, "hit")
        self.batch.cur(Value("int32", [0, 1]))
        self.batch.judge("DN", {"denormal_percentage_gt": 0}, "none")
        self.batch.run()

    def test_dead_units(self):
        rows, dead = 4, 3
        for dtype in DTYPES:
            alive = np.ones((rows, 8))
            partly = alive.copy()
            partly[:, :dead] = 0
            self.batch.tell("look -")
            self.batch.cur(Value(dtype, alive))
            self.batch.judge("DU", {}, "unchecked", NO_HISTORY)
            self.batch.tell("look")
            self.batch.judge("DU", {}, "none", actual=0.0)
            self.batch.cur(Value(dtype, partly))
            for look in range(1, 8):
                self.batch.tell("look")
                for steps in (1, 2, 5, 7, 8):
                    share = dead * 100 / 8 if look >= steps else 0.0
                    self.around_share(share, steps)
            self.batch.judge("DU", {}, "none", actual=37.5)  # the default is 50
            one = np.ones((rows, 8))
            one[0, 0] = 0  # not zero throughout
            self.batch.cur(Value(dtype, one))
            self.batch.tell("look")
            self.batch.judge("DU", {"dead_percentage_ge": 0, "steps": 1}, "hit", actual=0.0)
        self.batch.refused("DU", {"steps": 0})
        self.batch.refused("DU", {"steps": 1.5})
        self.batch.tell("look -")
        self.batch.run()

    def around_share(self, share, steps):
        self.around("DU", "dead_percentage_ge", share, steps=steps)

    def test_missing(self):
        """How old a value may be, and values that never came."""
        self.batch.cur(Value("float32", [1, 2]))
        for step, value_step, age in ((7, 7, 0), (7, 6, 1), (7, 5, 2), (7, -1, 0), (7, 9, 0)):
            self.batch.tell(f"at {step} {value_step}")
            for limit in (1, 2, 3):
                self.batch.judge("GM", {"age_ge": limit}, "hit" if age >= limit else "none", actual=float(age))
            self.batch.judge("GM", {}, "hit" if age >= 1 else "none")
        for error in (NO_VALUE, NOT_CAPTURED):
            self.batch.tell(f"absent {error}")
            for step, value_step, age in ((7, -1, 7), (7, 4, 3), (0, -1, 1)):
                self.batch.tell(f"at {step} {value_step}")
                for limit in (age, age + 1):
                    self.batch.judge("GM", {"age_ge": limit}, "hit" if age >= limit else "none", actual=float(age))
                self.batch.judge("GM", {}, "hit")
                self.batch.judge("TO", {}, "unchecked", error)
                self.batch.judge("TZ", {}, "unchecked", error)
        for error in (NO_MEMORY, NOT_NUMBERS):
            self.batch.tell(f"absent {error}")
            for condition in ("GM", "TO", "WNC", "CT", "DU", "FC"):
                self.batch.judge(condition, {}, "unchecked", error)
        self.batch.refused("GM", {"age_ge": 0.5})
        self.batch.run()

    def test_only_the_device_knows(self):
        self.batch.cur(Value("float32", [math.inf]))
        self.batch.judge("OO", {}, "unchecked", NO_FIGURE)
        self.batch.run()

    def test_huge(self):
        """Beyond 2^24 elements, where counting in float32 would stop; 2^24 + 8."""
        count = (1 << 24) + 8
        with tempfile.NamedTemporaryFile() as file:
            for dtype in ("uint8", "float16", "float32"):
                values = np.ones(count, dtype=dtype)
                values[:4] = 0
                values[-1] = 3
                file.seek(0)
                file.write(values.tobytes())
                file.flush()
                self.batch.tell(f"cur {dtype} {count} @{file.name}")
                self.batch.prev()
                zeros = 4.0 * 100 / count
                total = float(count - 4 + 2)
                self.around("TZ", "zero_percentage_ge", zeros)
                self.around("TL", "mean_gt", total / count)
                self.around("TS", "max_lt", 3.0)
                self.around("TR", "range_percentage_gt", float(count - 5) * 100 / count,
                            range_start_inclusive=1, range_end_inclusive=2)
                self.batch.judge("TO", {}, "none")
                self.batch.run()
                self.batch = Batch(self)
            values[-1] = math.nan
            file.seek(0)
            file.write(values.tobytes())
            file.flush()
            self.batch.tell(f"cur float32 {count} @{file.name}")
            self.batch.judge("TO", {}, "hit")
            self.batch.judge("TZ", {}, "unchecked", NAN)
            self.batch.run()

    def test_random(self):
        """Thousands of tensors; the threshold a millionth away from the figure, to either side."""
        rng = np.random.default_rng(3)
        for _ in range(1500):
            dtype = DTYPES[rng.integers(len(DTYPES))]
            cur, prev = self.draw(rng, dtype)
            self.batch.cur(cur)
            self.batch.prev(prev)
            bad = (NAN if np.isnan(cur.x).any() else 0) | (INF if np.isinf(cur.x).any() else 0)
            for condition in NOT_FINITE:
                self.batch.judge(condition, {}, "hit" if bad else "none")
            names = list(TESTS)
            for condition in rng.choice(names, 4, replace=False):
                param = TESTS[condition][rng.integers(len(TESTS[condition]))]
                extra = RANGE if param.startswith("range_percentage") else {}
                if bad:
                    self.batch.judge(condition, dict(extra, **{param: 1.0}), "unchecked", bad)
                    continue
                self.beside(condition, param, figures(cur.x, prev.x, 0, 4), extra, rng)
        self.assertGreater(self.batch.run(), 8000)

    def draw(self, rng, dtype):
        shape = [(5,), (17,), (2, 3), (4, 1, 9), (64,), (33, 3)][rng.integers(6)]
        both = []
        for _ in range(2):
            if dtype in FLOATS:
                values = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4)
                values[rng.random(shape) < 0.2] = 0
            elif dtype == "bool":
                values = rng.integers(0, 2, shape)
            else:
                values = rng.integers(0 if dtype.startswith("u") else -100, 100, shape)
            both.append(values)
        if dtype in FLOATS and rng.random() < 0.25:
            bad = [math.nan, math.inf, -math.inf][rng.integers(3)]
            both[0].reshape(-1)[rng.integers(both[0].size)] = bad
        return Value(dtype, both[0]), Value(dtype, both[1])

    def beside(self, condition, param, known, extra, rng):
        name, op = split(param)
        actual = known[name]
        if actual is None:
            self.batch.judge(condition, dict(extra, **{param: 0.0}), "unchecked", NO_FIGURE)
            return
        margin = 1e-6 * (abs(actual) + known["abs_mean"] + 1e-30)
        limit = actual + margin * (1 if rng.random() < 0.5 else -1)
        if not allowed(param, limit):
            self.batch.refused(condition, dict(extra, **{param: limit}))
            return
        self.batch.judge(condition, dict(extra, **{param: limit}), "hit" if COMPARE[op](actual, limit) else "none")


if __name__ == "__main__":
    harness.main()
