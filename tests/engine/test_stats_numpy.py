# SPDX-License-Identifier: GPL-3.0-or-later
"""gd_stats_compute and gd_stats_histogram against numpy in float64, every dtype."""
import math
import unittest
import warnings

import harness
import numpy as np
from tool import Refused, Tool, dims, hexed

REAL = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
        "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
TINY = {"float16": 2.0**-14, "float32": 2.0**-126, "float64": 2.0**-1022, "bfloat16": 2.0**-126,
        "complex64": 2.0**-126, "complex128": 2.0**-1022}
RTOL, ATOL, LO, HI = 1e-2, 1e-3, -1.0, 2.0


def magnitudes(values):
    """What the record is about: the elements in float64, the magnitudes of complex ones."""
    if values.dtype.kind != "c":
        return values.astype(np.float64)
    nan = np.isnan(values.real) | np.isnan(values.imag)
    return np.where(nan, np.nan, np.hypot(values.real.astype(float), values.imag.astype(float)))


def expected_stats(values, tiny, prev=None):
    x = magnitudes(values).ravel()
    finite = x[np.isfinite(x)]
    exact = math.fsum(finite)
    n = len(finite)
    mean = exact / n if n else 0.0
    record = {
        "count": x.size, "nan": np.isnan(x).sum(), "pos_inf": (x == np.inf).sum(),
        "neg_inf": (x == -np.inf).sum(), "zero": (x == 0).sum(),
        "neg_zero": ((x == 0) & np.signbit(x)).sum(), "positive": (finite > 0).sum(),
        "negative": (finite < 0).sum(), "denormal": ((finite != 0) & (np.abs(finite) < tiny)).sum(),
        "in_range": ((x >= LO) & (x <= HI)).sum(),
        "min": finite.min() if n else np.inf, "max": finite.max() if n else -np.inf,
        "mean": mean, "abs_mean": math.fsum(np.abs(finite)) / n if n else 0.0,
        "sum_sq": fsum(finite * finite), "std": math.sqrt(fsum((finite - mean) ** 2) / n) if n else 0.0,
        "mismatch": 0, "unpaired": 0, "mean_abs_delta": 0.0, "max_abs_delta": 0.0, "mean_abs_prev": 0.0, "dot": 0.0,
        "sum_sq_prev": 0.0, "mean_delta": 0.0, "sum_sq_delta": 0.0,
    }
    if prev is not None:
        record.update(expected_against(values.ravel(), prev.ravel()))
    return record


def expected_against(values, prev):
    wide = np.complex128 if values.dtype.kind == "c" else np.float64
    a, b = values.astype(wide), prev.astype(wide)
    both = np.isfinite(magnitudes(values)) & np.isfinite(magnitudes(prev))
    a, b = a[both], b[both]
    delta = np.hypot((a - b).real, (a - b).imag) if wide is np.complex128 else np.abs(a - b)
    abs_b = np.abs(magnitudes(b))
    signed = magnitudes(a) - magnitudes(b)
    near = delta <= ATOL + RTOL * abs_b
    same_inf = (values[~both] == prev[~both]).sum()
    n = len(a)
    return {
        "mismatch": values.size - near.sum() - same_inf,
        "unpaired": values.size - n,
        "mean_abs_delta": math.fsum(delta) / n if n else 0.0,
        "max_abs_delta": delta.max() if n else 0.0,
        "mean_abs_prev": math.fsum(abs_b) / n if n else 0.0,
        "dot": fsum((a * b.conj()).real), "sum_sq_prev": fsum(abs_b * abs_b),
        "mean_delta": math.fsum(signed) / n if n else 0.0, "sum_sq_delta": fsum(delta * delta),
    }


def fsum(values):
    return float(np.sum(values)) if not np.isfinite(values).all() else math.fsum(values)


class Stats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")
        cls.tool = Tool()
        cls.addClassCleanup(cls.tool.close)

    def stats(self, array, prev=None, slice_text="[...]", dtype=None):
        fields = ["stats", dtype or array.dtype.name, dims(array.shape), slice_text, hexed(array)]
        if prev is not None:
            fields.append(hexed(prev))
        lines = (line.split("=") for line in self.tool.ask(*fields).split("\n"))
        return {name: float.fromhex(value) if "0x" in value or "inf" in value or "nan" in value
                else float(value) for name, value in lines}

    def check(self, got, expected, what):
        self.assertEqual(got.keys(), expected.keys())
        for name, want in expected.items():
            want = float(want)
            have = got[name]
            if not math.isfinite(want) or name in ("min", "max"):
                self.assertEqual(have, want, f"{name} of {what}")
                continue
            scale = abs(want)
            if name in ("mean", "dot", "std", "mean_delta"):  # may cancel: relative to what was added up
                scale += {"mean": expected["abs_mean"], "std": 1e-3 * expected["abs_mean"],
                          "mean_delta": expected["mean_abs_delta"],
                          "dot": math.sqrt(expected["sum_sq"] or 0) * math.sqrt(expected["sum_sq_prev"] or 0)}[name]
            self.assertLessEqual(abs(have - want), 1e-12 * scale, f"{name} of {what}: {have} {want}")

    def compare(self, array, prev=None, tiny=None):
        tiny = TINY.get(array.dtype.name, 0.0) if tiny is None else tiny
        self.check(self.stats(array, prev), expected_stats(array, tiny, prev),
                   f"{array.dtype} {array.shape} {hexed(array)[:400]}")

    def special(self, name):
        base = [0.0, -0.0, 1.0, -1.0, 2.0, -1.0000001, 0.5, 1e-3, 3.0, 100.0]
        if name in REAL[:9]:
            info = np.iinfo(name) if name != "bool" else None
            values = [0, 1, 2, 3, 100] + ([info.min, info.max] if info else [])
            return np.array(values, name)
        real = np.dtype(name).type(0).real.dtype
        info = np.finfo(real)
        values = [*base, np.nan, np.inf, -np.inf, float(info.tiny), float(info.tiny) / 2,
                  -float(info.smallest_subnormal), min(float(info.max) / 3e4, 1e150), -float(info.eps)]
        array = np.array(values, real)
        if name in COMPLEX:
            a, b = np.meshgrid(array, array)
            array = np.empty(a.shape, name)
            array.real, array.imag = a, b
            array = array.ravel()
        return array

    def test_special_values_of_every_dtype(self):
        for name in [*REAL, *COMPLEX]:
            array = self.special(name)
            self.compare(array)
            self.compare(array, np.roll(array, 1))
            self.compare(array, array.copy())
            for value in array:
                self.compare(np.array(value, name))

    def test_random_arrays(self):
        rng = np.random.default_rng(11)
        for name in [*REAL, *COMPLEX]:
            for size in [1, 2, 7, 8, 9, 511, 512, 513, 1025, 5000]:
                if name in COMPLEX:
                    array = (rng.standard_normal(size) + 1j * rng.standard_normal(size)).astype(name)
                else:
                    array = (rng.standard_normal(size) * 10).astype(name)
                prev = array.copy()
                prev[rng.random(size) < 0.5] = 1
                self.compare(array, prev)
                self.compare(array.reshape(1, size, 1))
            raw = np.frombuffer(rng.bytes(2048 * np.dtype(name).itemsize), name)
            if name in ("bool", "float64", "complex128"):
                continue  # these overflow in the reference, too; test_overflow has them
            self.compare(raw)

    def test_strided(self):
        rng = np.random.default_rng(12)
        array = rng.standard_normal((9, 31, 17)).astype(np.float32)
        for text, view in [("[::2]", array[::2]), ("[:, ::-3, 1:9]", array[:, ::-3, 1:9]),
                           ("[..., 5]", array[..., 5]), ("[-1, :, ::4]", array[-1, :, ::4]),
                           ("[3, 4, 5]", array[3, 4, 5]), ("[None, 2:3]", array[None, 2:3])]:
            self.check(self.stats(array, array[::-1], text),
                       expected_stats(np.asarray(view), TINY["float32"],
                                      np.asarray(eval(f"a{text}", {"a": np.ascontiguousarray(array[::-1])}))),
                       text)

    def test_every_half_and_bfloat16(self):
        bits = np.arange(65536, dtype=np.uint16)
        self.compare(bits.view(np.float16))
        wide = (bits.astype(np.uint32) << 16).view(np.float32)
        expected = expected_stats(wide, TINY["bfloat16"])
        self.check(self.stats(bits, dtype="bfloat16"), expected, "all bfloat16")

    def test_std_of_numbers_far_from_zero(self):
        rng = np.random.default_rng(13)
        array = 1e9 + rng.random(100000)
        got = self.stats(array)
        self.assertAlmostEqual(got["std"], np.std(array - 1e9), delta=1e-7)
        constant = np.full(3000, 0.1)
        self.assertLess(self.stats(constant)["std"], 1e-15)

    def test_many_elements(self):
        """The sum of 4e6 float32 whose naive float32 sum would be off in the third digit."""
        array = np.full(4_000_000, 0.1, np.float32)
        array[::2] = 1000.3
        got = self.stats(array)
        wide = array.astype(np.float64)
        self.assertLess(abs(got["mean"] / wide.mean() - 1), 1e-12)
        self.assertLess(abs(got["std"] / wide.std() - 1), 1e-12)
        self.assertLess(abs(got["sum_sq"] / (wide * wide).sum() - 1), 1e-12)

    def test_overflow(self):
        got = self.stats(np.array([1e308, 1e308, 1e308, -1.0]))
        self.assertEqual((got["sum_sq"], got["max"], got["min"], got["nan"]), (math.inf, 1e308, -1.0, 0))
        self.assertEqual((got["mean"], got["std"]), (math.inf, math.inf))
        got = self.stats(np.concatenate([np.ones(600), [1e308, 1e308], np.full(600, np.nan)]))
        self.assertEqual((got["mean"], got["std"], got["nan"]), (math.inf, math.inf, 600))

    def test_empty(self):
        for shape in [(0,), (3, 0, 2)]:
            got = self.stats(np.zeros(shape, np.float32), np.zeros(shape, np.float32))
            self.assertEqual((got.pop("min"), got.pop("max")), (math.inf, -math.inf))
            self.assertEqual(set(got.values()), {0.0})

    def test_no_finite_element(self):
        got = self.stats(np.array([np.nan, np.inf, -np.inf, np.nan], np.float16))
        self.assertEqual((got["nan"], got["pos_inf"], got["neg_inf"]), (2, 1, 1))
        self.assertEqual((got["min"], got["max"], got["mean"], got["std"]), (math.inf, -math.inf, 0, 0))

    def test_strings_have_none(self):
        with self.assertRaisesRegex(Refused, "string"):
            self.tool.ask("stats", "string", "0", "[...]", "-")

    def hist(self, array, lo, hi, bins):
        return [int(line) for line in self.tool.ask("hist", array.dtype.name, dims(array.shape), repr(float(lo)),
                                                    repr(float(hi)), bins, hexed(array)).split()]

    def test_histogram(self):
        rng = np.random.default_rng(14)
        for name in REAL[1:]:
            for bins in (1, 3, 10, 64):
                array = (rng.standard_normal(3000) * 20).astype(name)
                lo, hi = float(array.min()), float(array.max())
                want = np.histogram(array.astype(np.float64), bins, (lo, hi))[0].tolist()
                self.assertEqual(self.hist(array, lo, hi, bins), want, f"{name} {bins}")
                want = np.histogram(array.astype(np.float64), bins, (-1.5, 7.25))[0].tolist()
                self.assertEqual(self.hist(array, -1.5, 7.25, bins), want, f"{name} {bins}")
        grid = np.arange(0, 1.0000001, 0.1)
        self.assertEqual(self.hist(grid, 0, 1, 10), np.histogram(grid, 10, (0, 1))[0].tolist())

    def test_histogram_of_odd_ranges(self):
        array = np.array([2.0, 2.0, np.nan, np.inf, 3.0], np.float32)
        self.assertEqual(sum(self.hist(array, 2, 2, 5)), 2)
        wide = np.array([-1.7e308, 0.0, 1.7e308])
        self.assertEqual(self.hist(wide, -1.7e308, 1.7e308, 3), [1, 1, 1])
        for lo, hi, bins in [(1, 0, 4), (math.nan, 1, 4), (0, math.inf, 4), (0, 1, 0)]:
            with self.assertRaises(Refused):
                self.hist(array, lo, hi, bins)


class Line(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tool = Tool()
        cls.addClassCleanup(cls.tool.close)

    def line(self, array, bins=0, utf8=1, dtype=None):
        return self.tool.ask("line", dtype or array.dtype.name, dims(array.shape), utf8, bins, hexed(array))

    def test_lines(self):
        f4 = np.float32
        for array, text in [
            (np.array([[1, -2], [0.5, 0]], f4),
             "float32 (2, 2) n=4 16 B min=-2 max=1 mean=-0.125 std=1.139 zeros=25.0%"),
            (np.array([1, 2, np.nan, np.inf, np.inf, -np.inf], f4),
             "float32 (6,) n=6 24 B min=1 max=2 mean=1.5 std=0.5 NaN!1 +Inf!2 -Inf!1"),
            (np.zeros((4, 256), np.int32), "int32 (4, 256) n=1024 4 KiB all zero"),
            (np.array([0, np.nan], f4), "float32 (2,) n=2 8 B min=0 max=0 mean=0 std=0 zeros=50.0% NaN!1"),
            (np.full(3, np.nan, f4), "float32 (3,) n=3 12 B NaN!3"),
            (np.array(0.1, f4), "float32 () 4 B value=0.1"),
            (np.array(np.nan, f4), "float32 () 4 B NaN!1"),
            (np.array([True, False, True]), "bool (3,) n=3 3 B true=2 false=1"),
            (np.zeros((0, 4), f4), "float32 (0, 4) n=0 0 B empty"),
            (np.array([-(2**40), 5]), "int64 (2,) n=2 16 B min=-1099511627776 max=5 mean=-5.498e+11 std=5.498e+11"),
            (np.array([3 + 4j, 0.6 + 0.8j], np.complex64),
             "complex64 (2,) n=2 16 B |min|=1 |max|=5 |mean|=3 std=2"),
        ]:
            self.assertEqual(self.line(array), text)

    def test_rare_zeros_are_not_rounded_away(self):
        array = np.ones(100000, np.int8)
        array[7] = 0
        self.assertIn(" zeros=0.0010%", self.line(array))
        array = 1 - array
        self.assertIn(" zeros=99.9990%", self.line(array))

    def test_histograms(self):
        array = np.repeat(np.arange(4.0, dtype=np.float32), [8, 0, 1, 4])
        self.assertTrue(self.line(array, 4).endswith(" |█ ▁▄|"), self.line(array, 4))
        self.assertTrue(self.line(array, 4, 0).endswith(" |# .=|"), self.line(array, 4, 0))
        self.assertNotIn("|", self.line(np.full(5, 2.5), 8))

    def test_sizes(self):
        for count, text in [(1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (102400, "100 KiB"),
                            (1 << 20, "1 MiB"), ((1 << 20) - 1, "1.0 MiB")]:
            self.assertIn(f" {text} ", self.line(np.ones(count, np.int8)))


if __name__ == "__main__":
    harness.main()
