# SPDX-License-Identifier: GPL-3.0-or-later
"""What numpy, safetensors and ml_dtypes write is read bit for bit: types, layouts, slices, statistics."""
import io
import itertools
import zipfile

import dumptool
import dumpvenv
import harness
import numpy as np

TYPES = ["|b1", "|i1", "|u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8",
         "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c8", "<c16", ">c16"]
SHAPES = [(), (1,), (0,), (7,), (2, 0, 3), (5, 3), (3, 4, 5)]
rng = np.random.default_rng(7)


def bits(dtype, shape):
    """Arbitrary bits: NaN with payloads, infinities, denormals."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


def native(array):
    """The same values in native byte order, in C order."""
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("=")).reshape(array.shape)


def header(text, version=(1, 0)):
    size = len(text).to_bytes(2 if version == (1, 0) else 4, "little")
    return b"\x93NUMPY" + bytes(version) + size + text


class Files(dumptool.Files):
    def save(self, array, name="array.npy"):
        np.save(self.dir / name, array)
        return self.dir / name

    def same(self, got, want, what):
        want = native(want)
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape), what)
        self.assertEqual(got.tobytes(), want.tobytes(), what)


class Npy(Files):
    def test_every_type_and_layout(self):
        for dtype, shape, order in itertools.product(TYPES, SHAPES, "CF"):
            array = np.array(bits(dtype, shape), order=order)
            path = self.save(array)
            self.same(self.tool.read(path), array, (dtype, shape, order))

    def test_slices_are_numpys(self):
        """Of files larger than one read, in every direction."""
        base = bits("<f4", (90, 80, 70))
        texts = ["[3]", "[-1, 5:9]", "[::7, ::-3]", "[..., 2]", "[:, -1, ::11]", "[10:10]", "[::-1, ::-1, ::-1]",
                 "[5:80:25, None, 3]", "[89, 79, 69]", "[:, :, 0]", "[1:, 2:, 3:]", "[::45, 40]"]
        for order, dtype in itertools.product("CF", ["<f4", ">f4", "<f8"]):
            with np.errstate(invalid="ignore"):
                array = np.array(base.astype(dtype), order=order)
            path = self.save(array)
            for text in texts:
                want = eval("array" + text, {"array": array})  # the strings above
                self.same(self.tool.read(path, slice=text), want, (order, dtype, text))
            flat = native(array).reshape(-1)
            for first, count in [(0, 1), (1, 69), (69, 2), (5599, 5602), (123456, 34567), (503999, 1), (0, 504000)]:
                got = self.tool.run(path, first, count, flat.dtype)
                self.assertEqual(got.tobytes(), flat[first:first + count].tobytes(), (order, dtype, first, count))
        with self.assertRaisesRegex(dumptool.Refused, "90"):
            self.tool.read(path, slice="[90]")
        with self.assertRaisesRegex(dumptool.Refused, "exceeds the limit"):
            self.tool.read(path, max=1000)

    def test_statistics_stream(self):
        """Large ones are read in pieces, by threads, in any layout: the same statistics as of the whole in memory."""
        a = rng.standard_normal((1500, 1501)).astype("<f4")
        b = a + rng.standard_normal(a.shape).astype("<f4")
        a[7, 3], a[1400, 2], a[9, 9] = np.nan, np.inf, -np.inf
        finite = a[np.isfinite(a)].astype("f8")
        for label, x, y in [("c", a, b), ("swapped", a.astype(">f4"), b), ("f", np.asfortranarray(a), b),
                            ("half", a.astype("f2"), b.astype("f2"))]:
            one, two = self.save(x, label + "1.npy"), self.save(y, label + "2.npy")
            for threads in [1, 2]:
                streamed, whole = self.tool.stats(one, prev=(two, ""), threads=threads)
                if label != "f":
                    self.assertEqual(streamed, whole, label)
                for key, value in whole.items():
                    self.assertAlmostEqual(streamed[key], value, delta=abs(value) * 1e-12 + 1e-12, msg=(label, key))
            if label in ("c", "f", "swapped"):
                self.assertEqual((streamed["nan"], streamed["pos_inf"], streamed["neg_inf"]), (1, 1, 1))
                np.testing.assert_allclose([streamed["mean"], streamed["std"], streamed["sum_sq"]],
                                           [finite.mean(), finite.std(), (finite ** 2).sum()], rtol=1e-9)
        streamed, whole = self.tool.stats(self.save(np.zeros((0, 3)), "empty.npy"))
        self.assertEqual(streamed, whole)

    def test_what_other_writers_write(self):
        data = np.arange(6, dtype="<f4")
        texts = {
            "as in Python 2": b"{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }\n",
            "other quotes, order": b'{"shape":(2,3),"fortran_order":False,"descr":"<f4"}',
            "native": b"{'descr': '=f4', 'fortran_order': False, 'shape': (2, 3)} \n",
            "a name": b"{'descr': 'float32', 'fortran_order': False, 'shape': (2, 3), }\n",
        }
        path = self.dir / "other.npy"
        for what, text in texts.items():
            path.write_bytes(header(text) + data.tobytes())
            self.same(self.tool.read(path), data.reshape(2, 3), what)
        text = b"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n"
        for version in [(2, 0), (3, 0)]:
            path.write_bytes(header(text, version) + data.tobytes())
            self.same(self.tool.read(path), data.reshape(3, 2).T, version)

    def test_appended_texts_and_raw(self):
        path = self.dir / "stream.npy"
        with path.open("wb") as out:
            np.save(out, np.arange(3))
            np.save(out, np.arange(4))
        self.same(self.tool.read(path), np.arange(3), "the first of two")
        self.assertEqual(self.tool.open(path)["notes"], ["160 bytes after the array were ignored"])
        for array in [np.array([b"ab", b"cde"]), np.array(["x", "yz"]), np.array([b"\x01\x02\x03"], "V3")]:
            got = self.tool.read(self.save(array))
            self.assertEqual((got.dtype, got.tobytes()), (np.uint8, array.tobytes()))
        entry = self.tool.open(self.save(np.zeros(2, "V2")))["entries"][0]
        self.assertEqual((entry["stored"], entry["shape"], entry["note"]), ("opaque", [2, 2], "raw bytes"))

    def test_cut_short(self):
        for order in "CF":
            array = np.array(bits("<f8", (10, 4)), order=order)
            path = self.save(array)
            path.write_bytes(path.read_bytes()[:-40])
            with self.assertRaisesRegex(dumptool.Refused, r"truncated: 320 bytes of elements expected, 280 found"):
                self.tool.read(path)
            want = array[:8] if order == "C" else array[:, :3]
            self.same(self.tool.read(path, partial=True), want, order)
        self.assertRegex(self.tool.open(path, partial=True)["notes"][0], "truncated")


class Npz(Files):
    def test_members(self):
        arrays = {"weights": bits("<f4", (40, 50)), "deep/er/name": bits(">i8", (3,)), "scalar": np.float64(3.5),
                  "empty": np.zeros((0, 2)), "fortran": np.asfortranarray(bits("<f2", (9, 8))),
                  "long": bits("<u2", (1, ) * 30 + (3, 2))}
        one, two, three = (self.dir / name for name in ("plain.npz", "packed.npz", "pipe.npz"))
        np.savez(one, **arrays)
        np.savez_compressed(two, **arrays)
        with three.open("wb") as out:
            np.savez(Unseekable(out), **arrays)
        for path in (one, two, three):
            self.assertEqual(self.tool.open(path)["format"], "npz")
            self.assertEqual(list(self.tool.entries(path)), list(arrays), path)
            for name, array in arrays.items():
                self.same(self.tool.read(path, name), np.asarray(array), (path, name))
            self.same(self.tool.read(path, "weights", "[3:30:9, ::-7]"), arrays["weights"][3:30:9, ::-7], path)
            streamed, whole = self.tool.stats(path, "weights")
            self.assertEqual(streamed, whole)
        empty = self.dir / "empty.npz"
        np.savez(empty)
        self.assertEqual(self.tool.entries(empty), {})

    def test_large_member(self):
        """Larger than what is checked or read at a time, with both compression methods."""
        array = np.repeat(rng.standard_normal(5000), 100).reshape(500, 1000)
        for save in (np.savez, np.savez_compressed):
            save(self.dir / "large.npz", array)
            self.same(self.tool.read(self.dir / "large.npz", "arr_0", "[490:, ::3]"), array[490:, ::3], save)
            self.assertEqual(*self.tool.stats(self.dir / "large.npz", "arr_0", threads=2))

    def test_members_of_zeros(self):
        """Their last compressed bytes inflate to more than is requested at a time."""
        for count in (1 << 20, 1 << 21, 3 << 21, 17 << 20):
            array = np.zeros(count, "<f4")
            array[0] = count
            np.savez_compressed(self.dir / "zeros.npz", array)
            self.same(self.tool.read(self.dir / "zeros.npz", "arr_0", "[-2:]"), array[-2:], count)
            self.same(self.tool.read(self.dir / "zeros.npz", "arr_0", "[:2]"), array[:2], count)

    def test_header_longer_than_usual(self):
        path = self.dir / "head.npz"
        text = b"{'descr': '<u1', 'fortran_order': False, 'shape': (3,), }" + b" " * 3000 + b"\n"
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            with zipfile.ZipFile(path, "w", method) as out:
                out.writestr("a.npy", header(text) + b"\1\2\3")
            self.same(self.tool.read(path, "a"), np.array([1, 2, 3], "u1"), method)


class Unseekable(io.RawIOBase):
    """Like a pipe: sizes follow the data."""

    def __init__(self, out):
        self.out = out

    def writable(self):
        return True

    def write(self, data):
        return self.out.write(data)


class OtherLibraries(Files):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.why = dumpvenv.missing("numpy", "safetensors", "ml_dtypes")
        if not cls.why:
            dumpvenv.write("write_tensors.py", cls.dir)

    def setUp(self):
        if self.why:
            self.skipTest(self.why)

    def expected(self, file, name):
        return np.load(self.dir / "expected" / file / (name + ".npy"))

    def values(self, got, want, what):
        """Bit for bit, except that any NaN of a widened type will do."""
        if got.dtype == np.float32:
            got, want = (np.where(np.isnan(x), np.float32("nan"), x) for x in (got, want))
        self.same(got, want, what)

    def test_small_types_as_numpy_writes_them(self):
        for path in sorted(self.dir.glob("float[68]_*.npy")):
            told = None if path.stem == "float8_e5m2" else path.stem
            self.values(self.tool.read(path, dtype=told), self.expected("npy", path.stem), path.stem)
        entry = self.tool.open(self.dir / "float8_e4m3fn.npy")["entries"][0]
        self.assertEqual(entry["stored"], "opaque")
        self.assertEqual(self.tool.open(self.dir / "int4.npy", dtype="int4")["notes"],
                         ["numpy has one value of this type per byte: shown as bytes"])
        for name in ("bfloat16.npy", "bfloat16_f.npy"):
            self.same(self.tool.read(self.dir / name), self.expected("npy", "bfloat16"), name)
        self.assertEqual(self.tool.open(self.dir / "bfloat16.npy")["notes"],
                         ["assumed to be bfloat16, which numpy writes as <V2"])

    def test_safetensors(self):
        path = self.dir / "all.safetensors"
        answer = self.tool.open(path)
        self.assertEqual(answer["format"], "safetensors")
        self.assertIn("format: np", answer["notes"][0])
        names = {entry["name"] for entry in answer["entries"]}
        self.assertEqual(names, {p.stem for p in (self.dir / "expected" / "safetensors").iterdir()})
        for name in names:
            self.values(self.tool.read(path, name), self.expected("safetensors", name), name)

    def test_sharded(self):
        path = self.dir / "model.safetensors.index.json"
        answer = self.tool.open(path)
        entries = {entry["name"]: entry for entry in answer["entries"]}
        self.assertEqual(answer["format"], "sharded")
        self.assertEqual(list(entries), ["a.weight", "a.bias", "b.weight", "c.gone", "d.absent"])
        for name in ("a.weight", "a.bias", "b.weight"):
            self.same(self.tool.read(path, name), self.expected("sharded", name), name)
        self.assertRegex(entries["c.gone"]["problem"], "cannot open model-3-of-2.safetensors: No such file")
        self.assertEqual(entries["d.absent"]["problem"], "model-1-of-2.safetensors does not contain a tensor of that name")
        self.assertIn("model-2-of-2.safetensors has 1 tensors that the index does not list", answer["notes"])


class Json(Files):
    def test_trees(self):
        path = self.dir / "a.json"
        path.write_bytes(b'\xef\xbb\xbf{"a": [1, -2.5e3, NaN, -Infinity, true, null, "\\u00e9\\ud83d\\ude00\\n"], "b": {}, '
                         b'"a": 3}')
        self.assertEqual(self.tool.json(path), {"b": {}, "a": 3})
        with self.assertRaisesRegex(dumptool.Refused, 'FILE:1: duplicate key "a"'):
            self.tool.json(path, unique=True)
        path.write_text('["\\u00e9\\ud83d\\ude00\\n", "\\ud800x", [[]], 1e999, -0]')
        tree = self.tool.json(path)
        self.assertEqual(tree[:3], ["é😀\n", "\ufffdx", [[]]])

    def test_mistakes_name_their_line(self):
        path = self.dir / "b.json"
        for text, what in [('{\n"a": 01}', "FILE:2"), ("[1,\n2,\n]", "FILE:3"), ('{"a"\n1}', "FILE:2: .*colon"),
                           ("[" * 100, "FILE:1: JSON nested deeper than 64 levels"), ("[1] x", "after the end"),
                           ('["\t"]', "control character"), ('["\\x"]', "escape"), ('["\\u0000"]', "NUL"),
                           ("{1: 2}", "key in quotes"), ("", "ends unexpectedly"), ('["', "ends unexpectedly"),
                           ("[-]", "expected a value"), ("[-NaN]", "expected a value"), ("nul", "value")]:
            path.write_text(text)
            with self.assertRaisesRegex(dumptool.Refused, what, msg=text):
                self.tool.json(path)
        path.write_bytes(b'["\xff"]')
        with self.assertRaisesRegex(dumptool.Refused, "not valid UTF-8"):
            self.tool.json(path)


if __name__ == "__main__":
    harness.main()
