# SPDX-License-Identifier: GPL-3.0-or-later
"""Slices and .npy headers against numpy, with thousands of seeded slices."""
import io
import unittest

import harness
import numpy as np
from tool import Refused, Tool, dims, hexed

NAMES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
         "float32", "float64", "complex64", "complex128"]


def random_part(rng, dim):
    def number():
        kind = rng.integers(0, 10)
        if kind < 7:
            return int(rng.integers(-dim - 2, dim + 3))
        if kind < 9:
            return int(rng.integers(-3 * dim - 9, 3 * dim + 10))
        return int(rng.choice([2**63 - 1, -(2**63) + 1, 2**62, -(2**31), 2**32]))

    def optional():
        return str(number()) if rng.random() < 0.6 else ""

    if rng.random() < 0.35:
        return str(number())
    text = optional() + ":" + optional()
    if rng.random() < 0.5:
        step = number()
        text += ":" + (str(step if step else 1) if rng.random() < 0.8 else "")
    return text


def random_slice(rng, shape):
    parts = [random_part(rng, dim) for dim in shape[: rng.integers(0, len(shape) + 1)]]
    if rng.random() < 0.08:
        parts.append(random_part(rng, 3))
    for _ in range(rng.integers(0, 3)):
        parts.insert(rng.integers(0, len(parts) + 1), str(rng.choice(["None", "newaxis"])))
    if rng.random() < 0.4 or not parts:
        parts.insert(rng.integers(0, len(parts) + 1), "...")
    if rng.random() < 0.02:
        parts.append("...")
    return "[" + str(rng.choice([", ", ",", " , "])).join(parts) + str(rng.choice(["", "", ","])) + "]"


class Slices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tool = Tool()
        cls.addClassCleanup(cls.tool.close)

    def compare(self, array, text):
        try:
            expected = eval(f"array{text}", {"array": array, "newaxis": None})
        except (IndexError, ValueError) as error:
            with self.assertRaises(Refused, msg=f"{array.shape} {text}: numpy says {error}"):
                self.tool.ask("slice", dims(array.shape), text)
            return False
        shape, strides, offset = self.tool.ask("slice", dims(array.shape), text).split(":")
        self.assertEqual(tuple(map(int, shape.split())), np.shape(expected), f"{array.shape} {text}")
        if np.size(expected) == 0:
            return True
        got = np.ndarray(np.shape(expected), array.dtype, array.tobytes(), int(offset),
                         tuple(map(int, strides.split())))
        np.testing.assert_array_equal(got, expected, f"{array.shape} {text}")
        return True

    def test_random_slices(self):
        rng = np.random.default_rng(1)
        worked = 0
        for _ in range(6000):
            shape = tuple(int(rng.integers(0 if rng.random() < 0.1 else 1, 8)) for _ in range(rng.integers(0, 6)))
            array = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
            worked += self.compare(array, random_slice(rng, shape))
        self.assertGreater(worked, 2000)
        self.assertLess(worked, 6000)

    def test_elements_are_copied_right(self):
        rng = np.random.default_rng(2)
        copied = 0
        while copied < 1200:
            shape = tuple(int(rng.integers(1, 7)) for _ in range(rng.integers(0, 5)))
            name = str(rng.choice(NAMES))
            array = np.frombuffer(rng.bytes(int(np.prod(shape, dtype=int)) * np.dtype(name).itemsize),
                                  name).reshape(shape)
            text = random_slice(rng, shape)
            try:
                expected = np.asarray(eval(f"array{text}", {"array": array, "newaxis": None}))
            except (IndexError, ValueError):
                continue
            got = self.tool.ask("take", name, dims(shape), text, hexed(array))
            self.assertEqual(got, expected.tobytes().hex(), f"{name} {shape} {text}")
            copied += 1

    def test_rank_limit(self):
        array = np.zeros((1,) * 30, np.int32)
        self.compare(array, "[None, None]")
        with self.assertRaisesRegex(Refused, "32"):
            self.tool.ask("slice", dims(array.shape), "[None, None, None]")

    def test_npy_headers_load(self):
        for name in NAMES:
            for shape in [(), (0,), (3,), (2, 3), (1, 2, 3, 2), (1,) * 32, (5, 0, 2)]:
                count = int(np.prod(shape, dtype=int))
                array = (np.arange(count) % 2).astype(name).reshape(shape)
                header = bytes.fromhex(self.tool.ask("npy", name, dims(shape)))
                self.assertEqual(len(header) % 64, 0)
                loaded = np.load(io.BytesIO(header + array.tobytes()), allow_pickle=False)
                self.assertEqual((loaded.dtype, loaded.shape), (array.dtype, array.shape))
                np.testing.assert_array_equal(loaded, array)
        header = bytes.fromhex(self.tool.ask("npy", "bfloat16", "3"))
        self.assertEqual(np.load(io.BytesIO(header + b"\x80\x3f" * 3)).dtype, np.uint16)
        header = bytes.fromhex(self.tool.ask("npy", "int8", dims((10**17,) + (1,) * 31)))
        self.assertEqual(np.lib.format.read_array_header_1_0(io.BytesIO(header[8:]))[0][0], 10**17)
        with self.assertRaisesRegex(Refused, "string"):
            self.tool.ask("npy", "string", "3")


if __name__ == "__main__":
    harness.main()
