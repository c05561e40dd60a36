# SPDX-License-Identifier: GPL-3.0-or-later
"""gd_format_values against numpy's str(), and what numpy has no word for: bfloat16 and letters."""
import unittest
import warnings

import harness
import numpy as np
from tool import Refused, Tool, dims, hexed

FLOATS = ["float16", "float32", "float64"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
COMPLEX = ["complex64", "complex128"]
EVERY = ["bool", *INTS, *FLOATS, *COMPLEX]

EDGE_VALUES = [0.0, -0.0, 1.0, -1.0, 0.1, 0.5, 1 / 3, 2 / 3, 1e-4, 9.9999e-5, 1e-5, 1e8, 99999999.0,
               99999996.0, 1e16, 1e15, 123456.789, 1e22, 1e23, 9.5, 0.95, 0.995, 1e-10, 5e-324, 2.0**-44,
               2.0**-1022, 1.7976931348623157e308, 65504.0, 6e-8, 2.0**-14, 2.0**-24, 3.4028235e38, 1e-45,
               1.17549435e-38, 2.0**24, 2.0**53, 2.0**63, 1000.0, 1000.5, 999.9995, 0.00012345678901234]
SPECIAL = [np.nan, np.inf, -np.inf]


def random_bits(rng, dtype, shape):
    """Numbers of every size that the type has, NaN and infinities among them."""
    dtype = np.dtype(dtype)
    raw = rng.integers(0, 256, size=(*shape, dtype.itemsize), dtype=np.uint8)
    return raw.reshape(-1).view(dtype)[: int(np.prod(shape, dtype=int))].reshape(shape).copy()


def random_array(rng, dtype):
    dtype = np.dtype(dtype)
    shape = tuple(int(rng.integers(1, 6)) for _ in range(rng.integers(1, 4)))
    if rng.random() < 0.3:
        shape = (int(rng.integers(1, 40)),)
    if rng.random() < 0.05:
        shape = tuple(int(rng.integers(1, 4)) for _ in range(5))
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        if rng.random() < 0.5:
            return random_bits(rng, dtype, shape)
        return rng.integers(0, 100, size=shape).astype(dtype)
    style = rng.integers(0, 6)

    def reals():
        if style == 0:
            return rng.standard_normal(shape)
        if style == 1:
            return np.round(rng.standard_normal(shape) * 100, int(rng.integers(0, 4)))
        if style == 2:
            return rng.standard_normal(shape) * 10.0 ** rng.integers(-12, 12, size=shape)
        if style == 3:
            return rng.integers(-5, 6, size=shape) * 10.0 ** float(rng.integers(-6, 9))
        if style == 4:
            return rng.choice(EDGE_VALUES, size=shape)
        return 2.0 ** rng.integers(-60, 60, size=shape)

    if rng.random() < 0.15:
        array = random_bits(rng, dtype, shape)
    elif dtype.kind == "c":
        array = (reals() + 1j * reals()).astype(dtype)
    else:
        array = reals().astype(dtype)
    if rng.random() < 0.2:
        flat = array.reshape(-1)
        for _ in range(rng.integers(1, 4)):
            flat[rng.integers(0, flat.size)] = rng.choice(SPECIAL)
    return array


class Format(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")
        cls.tool = Tool()
        cls.addClassCleanup(cls.tool.close)

    def text(self, array, precision=8, threshold=1000, edgeitems=3, linewidth=75, suppress=False,
             letter="-", show_all=0, slice_text="[...]", dtype=None):
        options = f"{precision},{threshold},{edgeitems},{linewidth},{int(suppress)},{show_all},{letter}"
        return self.tool.ask("print", dtype or array.dtype.name, dims(array.shape), options, slice_text,
                             hexed(array))

    def same(self, array, **options):
        with np.printoptions(**options):
            expected = str(array)
        got = self.text(array, **options)
        if got != expected:
            self.fail(f"{array.dtype} {array.shape} {options}\nnumpy:\n{expected}\ngradb:\n{got}\n"
                      f"bytes {hexed(array)[:2000]}")

    def test_edge_values_alone(self):
        for name in [*FLOATS, *COMPLEX]:
            for value in [*EDGE_VALUES, *SPECIAL]:
                for sign in (1, -1):
                    array = np.array([sign * value]).astype(name)
                    self.same(array)
                    self.same(array.reshape(()))

    def test_edge_values_in_pairs(self):
        values = [*EDGE_VALUES, *SPECIAL]
        for name in FLOATS:
            for a in values:
                for b in values:
                    self.same(np.array([a, -b]).astype(name))

    def test_random_arrays(self):
        rng = np.random.default_rng(20211)
        for name in EVERY:
            for _ in range(250):
                self.same(random_array(rng, name))

    def test_random_arrays_with_options(self):
        rng = np.random.default_rng(7)
        for name in EVERY:
            for _ in range(200):
                self.same(random_array(rng, name), precision=int(rng.integers(0, 18)),
                          threshold=int(rng.integers(0, 60)), edgeitems=int(rng.integers(1, 4)),
                          linewidth=int(rng.integers(1, 120)), suppress=bool(rng.integers(0, 2)))

    def test_every_bit_pattern_of_a_half(self):
        halves = np.arange(65536, dtype=np.uint16).view(np.float16)
        for start in range(0, 65536, 512):
            self.same(halves[start:start + 512], linewidth=200)
        for value in halves[::37]:
            self.same(np.array(value))

    def test_scalars(self):
        rng = np.random.default_rng(3)
        for name in EVERY:
            for _ in range(150):
                array = random_array(rng, name).reshape(-1)[:1].reshape(())
                self.same(array)
        for name in [*FLOATS, *COMPLEX]:
            for _ in range(300):
                self.same(random_bits(rng, name, (1,)).reshape(()))

    def test_abbreviated(self):
        for shape in [(1001,), (1000,), (40, 40), (7, 200), (2, 600), (12, 12, 12), (1, 1, 2000), (6, 300),
                      (3, 3, 3, 3, 3, 5), (11, 7, 8, 9), (1500, 1)]:
            count = int(np.prod(shape))
            for name in ["int32", "float32", "bool", "complex64"]:
                array = (np.arange(count) * 0.37).reshape(shape).astype(name)
                self.same(array)
                self.same(array, threshold=5, edgeitems=1)
                self.same(array, threshold=count, linewidth=40)

    def test_what_is_cut_out_does_not_count(self):
        array = np.ones(2000, np.float32)
        array[1000] = 1e30
        array[1001] = np.nan
        self.same(array)
        array[1999] = 1e-30
        self.same(array)

    def test_empty(self):
        for shape in [(0,), (0, 3), (2, 0), (1, 0, 4)]:
            for name in EVERY:
                self.same(np.zeros(shape, name))

    def test_all_shows_all(self):
        array = np.arange(3000, dtype=np.int16)
        with np.printoptions(threshold=10**9):
            self.assertEqual(self.text(array, show_all=1), str(array))

    def test_slices_print_as_their_copies(self):
        array = np.arange(2 * 30 * 5).reshape(2, 30, 5).astype(np.float32) / 7
        for text, view in [("[0]", array[0]), ("[:, ::-7]", array[:, ::-7]), ("[..., 0]", array[..., 0]),
                           ("[1, 3:9, None, ::2]", array[1, 3:9, None, ::2]), ("[1, 2, 3]", array[1, 2, 3])]:
            self.assertEqual(self.text(array, slice_text=text), str(view))

    def test_bfloat16_digits_are_the_shortest(self):
        """Each text reads back as the same bfloat16, and no text with one digit less does."""
        bits = np.arange(0, 65536, 7, dtype=np.uint16)
        finite = bits[(bits & 0x7F80) != 0x7F80]
        for start in range(0, finite.size, 600):
            part = finite[start:start + 600]
            for pattern, word in zip(part, self._scalars(part)):
                self._check_shortest(int(pattern), word)

    def _scalars(self, patterns):
        return [self.text(np.array(p), dtype="bfloat16") for p in patterns]

    def _check_shortest(self, pattern, word):
        self.assertEqual(_to_bfloat16(float(word)), pattern, word)
        digits = word.lstrip("-").split("e")[0].replace(".", "").strip("0")
        if len(digits) > 1:
            shorter = f"{float(word):.{len(digits) - 2}e}"
            self.assertNotEqual(_to_bfloat16(float(shorter)), pattern, f"{word} {shorter}")

    def test_bfloat16_arrays(self):
        bits = np.array([0x3F80, 0x3DCD, 0xC000, 0x7FC0, 0x7F80, 0xFF80], np.uint16)
        self.assertEqual(self.text(bits, dtype="bfloat16"), "[ 1.   0.1 -2.   nan  inf -inf]")
        self.assertEqual(self.text(bits[:2].reshape(1, 2), dtype="bfloat16"), "[[1.  0.1]]")

    def test_letters(self):
        array = np.array([[1.5, -2.25], [1e10, 0.0]], np.float32)
        self.assertEqual(self.text(array, letter="f", precision=2),
                         "[[          1.50          -2.25]\n [10000000000.00           0.00]]")
        self.assertEqual(self.text(array, letter="e", precision=3),
                         "[[ 1.500e+00 -2.250e+00]\n [ 1.000e+10  0.000e+00]]")
        self.assertEqual(self.text(array, letter="x"), "[[0x3fc00000 0xc0100000]\n [0x501502f9 0x00000000]]")
        self.assertEqual(self.text(array, letter="d"), "[[          1          -2]\n [10000000000           0]]")
        special = np.array([np.nan, np.inf, -np.inf, -0.9], np.float64)
        self.assertEqual(self.text(special, letter="d"), "[ nan  inf -inf    0]")
        self.assertEqual(self.text(np.array(0.1, np.float16), letter="x"), "0x2e66")
        self.assertEqual(self.text(np.array([2**64 - 1], np.uint64), letter="f", precision=1),
                         "[18446744073709551615.0]")
        self.assertEqual(self.text(np.array([1.5 - 2j], np.complex64), letter="f", precision=1), "[1.5-2.0j]")
        self.assertEqual(self.text(np.array([True, False]), letter="d"), "[1 0]")
        rng = np.random.default_rng(5)
        values = rng.standard_normal(500) * 10.0 ** rng.integers(-8, 8, size=500)
        words = self.text(values, letter="e", precision=12, linewidth=10**6).strip("[]").split()
        self.assertEqual(words, [f"{v:.12e}" for v in values])

    def test_strings_are_refused(self):
        with self.assertRaisesRegex(Refused, "string"):
            self.tool.ask("print", "string", "2", "8,1000,3,75,0,0,-", "[...]", "-")


def _to_bfloat16(value):
    """Nearest even, by an exact comparison of neighbours in float64."""
    as_float = np.float32(value)
    low = int(as_float.view(np.uint32)) >> 16
    best = None
    for candidate in (low - 1, low, low + 1):
        if candidate < 0 or (candidate & 0x7F80) == 0x7F80 or (candidate ^ low) & 0x8000:
            continue
        other = float(np.uint32(candidate << 16).view(np.float32))
        key = (abs(other - value), candidate & 1)
        if best is None or key < best[0]:
            best = (key, candidate)
    return best[1]


if __name__ == "__main__":
    harness.main()
