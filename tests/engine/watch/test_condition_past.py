# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions that compare a value with its past: the running means from numpy's weighted ones."""
import math
import unittest

import harness
import numpy as np
from judge import DTYPES, EMPTY, FLOATS, INF, NAN, NO_FIGURE, NO_HISTORY, Batch, Value

WARMUP, SHARE = 10, 2 / 21
FLOOR, REACH, MOST = 1e-3, 10, 1e9


def running(values):
    """Mean and deviation: the first ten count alike, then each has 2/21 and the rest what is left."""
    n = len(values)
    late = max(0, n - WARMUP)
    weights = [(1 - SHARE) ** late / min(n, WARMUP)] * min(n, WARMUP)
    weights += [SHARE * (1 - SHARE) ** (late - 1 - i) for i in range(late)]
    middle = float(np.average(values, weights=weights))
    return middle, math.sqrt(float(np.average((np.asarray(values) - middle) ** 2, weights=weights)))


class Past(unittest.TestCase):
    def setUp(self):
        self.batch = Batch(self)

    def past(self, tensors, dtype="float64"):
        self.batch.tell("past")
        for step, values in enumerate(tensors):
            self.batch.cur(Value(dtype, values))
            self.batch.tell(f"past {step}")

    def limits(self, condition, param, actual, fires=lambda actual, limit: actual > limit, **extra):
        for limit in (actual, np.nextafter(actual, -math.inf), np.nextafter(actual, math.inf)):
            if limit > 0:
                self.batch.judge(condition, dict(extra, **{param: limit}), "hit" if fires(actual, limit) else "none",
                                 actual=actual)

    def test_warm_up(self):
        for seen in (0, 1, 9, 10):
            self.past([[1.0, 2.0]] * seen)
            self.batch.cur(Value("float64", [1.0, 2.0]))
            for condition in ("SC", "GS", "LS", "LP"):
                if seen < WARMUP:
                    self.batch.judge(condition, {}, "unchecked", NO_HISTORY)
                else:
                    self.batch.judge(condition, {}, "none")
        self.batch.tell("past")
        self.batch.judge("SC", {}, "unchecked", NO_HISTORY)
        self.batch.run()

    def test_thresholds(self):
        """After a constant past every figure is exact."""
        for dtype in DTYPES:
            level = 1 if dtype == "bool" else 4
            self.past([[level] * 4] * 12, dtype)
            for now in ([level] * 4, [0] * 4, [level, level, 0, 0]) + (() if dtype == "bool" else ([8] * 4, [100] * 4)):
                value = Value(dtype, now)
                self.batch.cur(value)
                size = float(np.abs(value.x).mean())
                z = (size - level) / (FLOOR * level)
                self.batch.judge("SC", {}, "hit" if abs(z) > 6 else "none", actual=z)
                for limit in (abs(z), np.nextafter(abs(z), 0), np.nextafter(abs(z), math.inf)):
                    if limit > 0:
                        self.batch.judge("SC", {"z_score_gt": limit}, "hit" if abs(z) > limit else "none", actual=z)
                ratio = math.sqrt(float((value.x**2).sum())) / (2.0 * level)
                self.limits("GS", "norm_ratio_gt", ratio)
                self.batch.judge("GS", {}, "hit" if ratio > 10 else "none")
                self.limits("LS", "mean_ratio_gt", float(value.x.mean()) / level)
                rise = (float(value.x.mean()) - level) / (FLOOR * level)
                self.batch.judge("LS", {}, "hit" if value.x.mean() > 3 * level or rise > 6 else "none")
                for limit in (rise, np.nextafter(rise, 0), np.nextafter(rise, math.inf)):
                    if limit > 0:
                        self.batch.judge("LS", {"mean_z_score_gt": limit}, "hit" if rise > limit else "none",
                                         actual=rise)
        self.batch.run()

    def test_running_figures(self):
        rng = np.random.default_rng(5)
        for length in (10, 11, 15, 30, 60):
            tensors = 5 + rng.random((length, 6))  # close enough together that nothing is pulled in
            self.past(tensors)
            size, deviation = running(np.abs(tensors).mean(axis=1))
            norm, _ = running(np.sqrt((tensors**2).sum(axis=1)))
            for factor in (0.5, 0.99, 1.0, 1.01, 2.0, 50.0):
                now = factor * (5 + rng.random(6))
                self.batch.cur(Value("float64", now))
                z = (np.abs(now).mean() - size) / deviation
                ratio = math.sqrt((now**2).sum()) / norm
                spike = now.mean() / size
                for condition, param, figure in (("SC", "z_score_gt", z), ("GS", "norm_ratio_gt", ratio),
                                                 ("LS", "mean_ratio_gt", spike), ("LS", "mean_z_score_gt", z)):
                    for limit in (abs(figure) * (1 - 1e-7), abs(figure) * (1 + 1e-7)):
                        rises = figure > 0 or condition == "SC"
                        outcome = "hit" if rises and abs(figure) > limit else "none"
                        self.batch.judge(condition, {param: limit}, outcome, near=figure)
        self.batch.run()

    def test_what_is_left_out(self):
        """Values that are not finite, empty ones, and a second one of the same step."""
        plain = [[1.0, 3.0], [2.0, 2.5], [1.5, 1.0]] * 4
        now = Value("float64", [2.0, 9.0])
        size, deviation = running([float(np.mean(values)) for values in plain])
        z = (5.5 - size) / deviation
        self.batch.tell("past")
        for step, values in enumerate(plain):
            for others in ([math.nan, 1e9], [math.inf, 1], []):
                self.batch.cur(Value("float64", others))
                self.batch.tell(f"past {step}")
            self.batch.cur(Value("float64", values))
            self.batch.tell(f"past {step}")
            self.batch.cur(Value("float64", [1e6, 1e6]))
            self.batch.tell(f"past {step}")
        self.batch.cur(now)
        self.batch.judge("SC", {}, "hit" if z > 6 else "none", near=z)
        for values, error in (([math.nan, 1], NAN), ([math.inf, 1], INF), ([], EMPTY)):
            self.batch.cur(Value("float64", values))
            for condition in ("SC", "GS", "LS", "LP"):
                self.batch.judge(condition, {}, "unchecked", error)
        self.batch.run()

    def test_a_spike_does_not_hide_the_next(self):
        self.past([[4.0 + 0.1 * (step % 2)] for step in range(20)])
        for step, value, outcome in ((20, 4e30, "hit"), (21, 4.0, "none"), (22, 4e3, "hit")):
            self.batch.cur(Value("float64", [value]))
            for condition in ("SC", "GS", "LS"):
                self.batch.judge(condition, {}, outcome)
            self.batch.judge("LS", {"mean_z_score_gt": 8}, outcome)
            self.batch.tell(f"past {step}")
        # a level that stays becomes the normal one
        for step in range(23, 90):
            self.batch.cur(Value("float64", [4e3]))
            self.batch.tell(f"past {step}")
        for condition in ("SC", "GS", "LS"):
            self.batch.judge(condition, {}, "none")
        self.batch.run()

    def test_zero_and_huge_pasts(self):
        self.past([[0.0, 0.0]] * 12)
        for condition, actual in (("SC", 0.0), ("GS", 1.0)):
            self.batch.judge(condition, {}, "none", actual=actual)
        self.batch.judge("LS", {"mean_ratio_gt": 3}, "unchecked", NO_FIGURE)
        self.batch.cur(Value("float64", [1.0, 1.0]))
        for condition in ("SC", "GS"):
            self.batch.judge(condition, {}, "hit", actual=MOST)
        self.past([[-1.0]] * 12)  # a loss below 0: its ratio says nothing
        self.batch.cur(Value("float64", [50.0]))
        self.batch.judge("LS", {"mean_ratio_gt": 3}, "unchecked", NO_FIGURE)
        self.batch.judge("SC", {}, "hit", actual=(50.0 - 1.0) / FLOOR)
        self.past([[1e200], [3e200]] * 8)  # squares overflow: such values are left out
        self.batch.cur(Value("float64", [1.0]))
        self.batch.judge("SC", {}, "unchecked", NO_HISTORY)
        self.past([[1e150], [3e150]] * 8)
        self.batch.cur(Value("float64", [1.0]))
        self.batch.judge("SC", {}, "none")
        self.batch.run()

    def test_loss(self):
        for dtype in FLOATS:
            for value, outcome in ((1.0, "none"), (math.nan, "hit"), (math.inf, "hit"), (-math.inf, "hit")):
                self.batch.cur(Value(dtype, value))
                self.batch.judge("LN", {}, outcome)
        self.batch.run()

    def test_plateau(self):
        """Steps since the loss was lowest, by a ten-thousandth at least."""
        for losses, best in (([5 - 0.1 * i for i in range(20)], 19), ([5.0] + [6.0] * 19, 0), ([5.0] * 20, 0),
                             ([5.0, 4.0] + [4.0 - 1e-6] * 18, 1), ([-5.0, -6.0] + [-6.1] * 18, 2),
                             ([0.0] * 10 + [-1.0] * 10, 10)):
            self.past([[loss] for loss in losses])
            for now, step, stall in ((losses[best], 20, 20 - best), (losses[best] + 1, 300, 300 - best),
                                     (losses[best] - 1, 300, 0)):
                self.batch.cur(Value("float64", now))
                self.batch.tell(f"at {step} {step}")
                for limit in (stall, stall + 1, max(1, stall - 1)):
                    if limit >= 1:
                        self.batch.judge("LP", {"stall_ge": limit}, "hit" if stall >= limit else "none",
                                         actual=float(stall))
                self.batch.judge("LP", {}, "hit" if stall >= 200 else "none", actual=float(stall))
        self.batch.refused("LP", {"stall_ge": 0})
        self.batch.refused("LP", {"stall_ge": 2.5})
        self.batch.run()


if __name__ == "__main__":
    harness.main()
