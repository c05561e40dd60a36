# SPDX-License-Identifier: GPL-3.0-or-later
"""compare: metrics equal to numpy's, other tools' columns computed as those tools do, what is matched with what, and
what is said about broken files."""
import csv
import json
import math
import struct
import unittest

import harness
import numpy as np
from wire import field


def gradb(*commands, cwd, text=False):
    """Runs the commands; their records (or their text), and the exit status."""
    done = harness.run_gradb("-nx", "-q", "--batch", *([] if text else ["--json"]), *harness.typed(*commands), cwd=cwd)
    if text:
        return done.stdout, done
    return harness.records(done), done


def number(text):
    """A metric in JSON: a number, or a string if it is not finite."""
    return float(text)


def bfloat16(array):
    """Rounded to bfloat16 (nearest even), as float32."""
    bits = array.astype(np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16 << 16
    return bits.astype(np.uint32).view(np.float32)


def safetensors(path, tensors):
    """A safetensors file of (name, dtype, array) by its published layout."""
    header, blobs, at = {}, [], 0
    for name, dtype, array in tensors:
        if dtype == "BF16":
            blob = (bfloat16(array).view(np.uint32) >> 16).astype("<u2").tobytes()
        else:
            blob = array.tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"".join(blobs))


def ckpt(path, tensors):
    """A MindSpore checkpoint of (name, array): float32 parameters, as its proto has them."""
    out = b""
    for name, array in tensors:
        dims = b"".join(field(1, n) for n in array.shape)
        tensor = dims + field(2, "Float32") + field(3, array.astype("<f4").tobytes())
        out += field(1, field(1, name) + field(2, tensor))
    path.write_bytes(out)


SMALL = {"float16": 2.0**-10, "float32": 2.0**-20, "float64": 2.0**-40, "complex64": 2.0**-20}
CROSS = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-4), "float64": (1e-4, 1e-4), "complex64": (1e-4, 1e-4)}


def expected(a, b):
    """What each section of a row of `compare a b` says, in float64."""
    if a.size != b.size:
        return {"verdict": "SHAPE"}
    coarser = min((a.dtype.name, b.dtype.name), key=["float16", "float32", "complex64", "float64"].index) \
        if a.dtype.kind in "fc" and b.dtype.kind in "fc" else None
    rtol, atol = CROSS[coarser] if coarser else CROSS.get(b.dtype.name, CROSS.get(a.dtype.name, (0, 0)))
    wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    if a.dtype.kind in "iub" and b.dtype.kind in "iub":
        distance = np.array([abs(int(x) - int(y)) for x, y in zip(a.flat, b.flat)], float)
    x, y = a.ravel().astype(wide), b.ravel().astype(wide)
    finite = np.isfinite(x) & np.isfinite(y)
    same = ((x == y) | (np.isnan(x) & np.isnan(y))) & ~finite
    mismatch = int((~finite & ~same).sum())
    with np.errstate(all="ignore"):
        if a.dtype.kind not in "iub" or b.dtype.kind not in "iub":
            distance = np.abs(x - y)
        d, x, y = distance[finite], x[finite], y[finite]
        size = np.abs(y)
        close = d <= atol + rtol * size
        share = (close.sum() + same.sum()) / a.size if a.size else 1.0
        scale = max(np.abs(x).max(initial=0), size.max(initial=0), 1e-300) * 2
        norm = math.sqrt(math.fsum((size / scale) ** 2)) if len(y) else 0
        apart = math.sqrt(math.fsum(np.abs(x / scale - y / scale) ** 2)) if len(y) else 0
        norm_a = math.sqrt(math.fsum(np.abs(x / scale) ** 2)) if len(y) else 0
        rel_l2 = 0 if apart == 0 else math.inf if norm == 0 else apart / norm
        dot = math.fsum((x / scale * np.conj(y / scale)).real)
        cosine = 1 if norm == 0 and norm_a == 0 else math.nan if not norm or not norm_a else dot / norm / norm_a
        big = size > SMALL.get(coarser or (a if a.dtype.kind == "f" else b).dtype.name, 0)
        out = {"close": share, "max_abs": d.max(initial=0), "mean_abs": d.mean() if len(d) else 0, "rel_l2": rel_l2,
               "max_rel": (d[big] / size[big]).max(initial=0), "cosine": cosine, "mismatch": mismatch,
               "same_nonfinite": int(same.sum()), "count": a.size,
               "r1k": ((d < 0.001 * size) | (d == 0)).mean() if len(d) else 1,
               "r5k": ((d < 0.005 * size) | (d == 0)).mean() if len(d) else 1}
    out["verdict"] = "NONFINITE" if mismatch else "SAME" if (d == 0).all() else "PASS" if share == 1 else \
        "WARN" if share >= 0.999 and rel_l2 <= 10 * rtol else "FAIL"
    return out


def cut(number, decimals):
    return int(number * 10**decimals) / 10**decimals if math.isfinite(number) else number


def troubleshooter(a, b, rtol=1e-4, atol=1e-4):
    """The cells of compare_npy_dir."""
    if a.shape != b.shape:
        return ["Shape is inconsistent", "0.00%", "nan", "nan, nan"]
    x = a if np.issubdtype(a.dtype, np.floating) else a.astype(np.float64)
    y = b if np.issubdtype(b.dtype, np.floating) else b.astype(np.float64)
    with np.errstate(all="ignore"):
        differ = x != y
        if not differ.any():
            return ["True", "100.00%", "1.00000", "0.00000, 0.00000"]
        d = np.abs(x - y)[differ]
        ratio = np.isclose(x, y, rtol, atol).sum() / x.size
        na, nb = np.linalg.norm(x.ravel()), np.linalg.norm(y.ravel())
        eps = np.finfo(np.float64).eps
        cosine = 1.0 if na <= eps and nb <= eps else math.nan if na <= eps or nb <= eps else \
            float(np.clip(np.dot(x.ravel(), y.ravel()) / (na * nb), -1, 1))
    return [str(bool(ratio == 1)), f"{cut(ratio, 4):.2%}", f"{cut(cosine, 5):.5f}",
            f"{cut(float(d.mean()), 5):.5f}, {cut(float(d.max()), 5):.5f}"]


def msprobe(n, b):
    """Cosine, EucDist, MaxAbsErr, MaxRelativeErr and the two ratios of arrays of one shape and float type."""
    n, b = n.copy(), b.copy()
    if (np.isinf(n) != np.isinf(b)).any() or (np.isnan(n) != np.isnan(b)).any():
        return ["N/A"] * 6
    n[~np.isfinite(n)] = 0
    b[~np.isfinite(b)] = 0
    eps = np.finfo(b.dtype).eps
    top, bottom = n.copy(), b.copy()
    top[b == 0] += eps
    bottom[b == 0] += eps
    with np.errstate(all="ignore"):
        rel = np.abs((top - bottom) / bottom)
        cosine = np.dot(n.ravel(), b.ravel()) / (np.linalg.norm(n.ravel()) * np.linalg.norm(b.ravel()))
    cosine = float(f"{float(cosine):.12f}")
    return [round(cosine, 6) if cosine > 0.9999 else cosine, float(np.linalg.norm((n - b).ravel())),
            float(np.abs(n - b).max()), float(rel.max()), float((rel < 0.001).mean()), float((rel < 0.005).mean())]


DISTANCES = {"max_abs", "max_abs_at", "mean_abs", "rel_l2", "max_rel", "r1k", "r5k", "cosine"}


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.folder_of(cls)
        for side in "ab":
            (cls.folder / side).mkdir()
        rng = np.random.default_rng(7)
        x = rng.normal(size=(90, 401)).astype(np.float32)
        nan, inf = np.float32(np.nan), np.float32(np.inf)
        bad, other = x.copy(), x.copy()
        bad[1, 2] = nan
        bad[3] = inf
        other[3] = inf
        other[4, 5] = -inf
        warn = x.copy()
        warn[0, 0] += np.float32(0.001)
        zeros = np.zeros((5, 3), np.float32)
        wide = rng.normal(size=3000) * 10.0 ** rng.integers(-300, 300, 3000)
        cls.pairs = {
            "same": (x, x), "close": (x * np.float32(1.00001), x), "warn": (warn, x), "twice": (2 * x, x),
            "nonfinite": (bad, other), "alike": (bad, bad + 0), "zeros": (zeros, zeros), "zero_b": (zeros + 1, zeros),
            "zero_a": (zeros, zeros + 1), "half": (x.astype(np.float16), x), "halves": (x.astype(np.float16),
                                                                                       (x * 1.01).astype(np.float16)),
            "double": (x.astype(np.float64), x), "wide": (wide * (1 + 1e-9), wide), "int": (np.arange(70), np.arange(70) // 2),
            "u64": (np.array([2**64 - 1, 7], np.uint64), np.array([2**64 - 2, 7], np.uint64)),
            "i64": (np.array([2**62 + 1, -5]), np.array([2**62, -5])), "bool": (x > 0, x > 0.1),
            "mixed": (np.arange(9), np.arange(9) * 1.00001), "complex": ((x + 1j * x).astype(np.complex64),
                                                                        (x + 1.001j * x).astype(np.complex64)),
            "large": (np.arange(1, 9) * 2.0**50 + 2.0**30, np.arange(1, 9) * 2.0**50),
            "empty": (x[:0], x[:0]), "scalar": (np.float32(3), np.float32(3.5)), "shape": (x, x[:5]),
            "long": (rng.normal(size=2_200_000).astype(np.float32), None),
        }
        long = cls.pairs["long"][0]
        changed = long.copy()
        changed[2_100_000] += np.float32(9)
        cls.pairs["long"] = (changed, long)
        for name, arrays in cls.pairs.items():
            for side, array in zip("ab", arrays):
                np.save(cls.folder / side / f"{name}.npy", array)
        (cls.folder / "a" / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00{'descr'")
        np.save(cls.folder / "b" / "broken.npy", x)
        np.save(cls.folder / "a" / "extra.npy", x)

    def rows(self, line):
        (record,), done = gradb(line, cwd=self.folder)
        self.assertEqual(record["command"], "compare")
        return record, done

    def test_figures_are_those_of_numpy(self):
        record, done = self.rows("compare a b")
        self.assertEqual(done.returncode, 6)
        rows = {row.get("b", row.get("a")): row for row in record["pairs"]}
        self.assertEqual(rows["broken"]["verdict"], "UNREADABLE")
        self.assertIn("header", rows["broken"]["note"])
        self.assertEqual(rows["extra"]["verdict"], "MISSING-B")
        for name, (a, b) in self.pairs.items():
            with self.subTest(name):
                want, row = expected(np.asarray(a), np.asarray(b)), rows[name]
                self.assertEqual(row["verdict"], want.pop("verdict"))
                if not np.size(a):  # no elements: no distance
                    self.assertFalse(DISTANCES & set(row))
                    want = {key: value for key, value in want.items() if key not in DISTANCES}
                for key, value in want.items():
                    got = number(row[key])
                    if math.isnan(value):
                        self.assertTrue(math.isnan(got), (key, got))
                    else:
                        self.assertTrue(got == value or math.isclose(got, value, rel_tol=1e-9, abs_tol=1e-15),
                                        (key, got, value))
        self.assertEqual(rows["long"]["max_abs_at"], 2_100_000)
        self.assertEqual(rows["close"]["how"], "name")

    def test_the_distance_in_units_of_the_last_place(self):
        record, _ = self.rows("compare a b --on halves")
        a, b = (array.view(np.int16).astype(int).ravel() for array in self.pairs["halves"])
        a, b = (np.where(bits < 0, -(bits & 0x7fff), bits) for bits in (a, b))
        at = int(np.sort(np.abs(a - b))[math.ceil(0.99 * len(a)) - 1])
        self.assertEqual(record["pairs"][0]["ulp99"], 2 ** at.bit_length() - 1)

    def test_tolerances_are_the_users(self):
        for line, verdict in (("compare a/warn.npy b/warn.npy", "WARN"), ("compare a/close.npy b/close.npy", "PASS"),
                              ("compare a/close.npy b/close.npy --profile strict", "FAIL"),
                              ("compare a/close.npy b/close.npy rtol=1e-6", "FAIL"),
                              ("compare a b --on close --tol clos*=0,1e-9", "FAIL"),
                              ("compare a b --on twice --tol tw?ce=2,0", "PASS")):
            record, done = self.rows(line)
            self.assertEqual((line, record["pairs"][0]["verdict"]), (line, verdict))
            self.assertEqual(done.returncode, 6 if verdict == "FAIL" else 0)

    def test_allclose_is_numpys(self):
        for extra, equal_nan in (("", False), (" --equal-nan", True)):
            record, _ = self.rows("compare a b --as allclose" + extra)
            rows = {row["orig array name"]: row for row in record["pairs"]}
            for name, (a, b) in self.pairs.items():
                if np.shape(a) == np.shape(b):
                    with self.subTest(name=name, equal_nan=equal_nan), np.errstate(all="ignore"):
                        close = np.isclose(a, b, equal_nan=equal_nan)
                        self.assertEqual(rows[name]["allclose"], str(bool(close.all())))
                        self.assertEqual(int(rows[name]["not close"]), int((~close).sum()))

    def test_troubleshooters_table(self):
        record, _ = self.rows("compare a b --as troubleshooter --csv ts.csv")
        with open(self.folder / "ts.csv", newline="") as file:
            table = list(csv.reader(file))
        self.assertEqual(table[0], ["orig array name", "target array name", "result of allclose", "ratio of allclose",
                                    "cosine similarity", "mean & max diffs"])
        rows = {row[0]: row[2:] for row in table[1:]}
        for name, (a, b) in self.pairs.items():
            if np.asarray(a).dtype.kind != "c" and np.size(a) and name != "wide":
                with self.subTest(name):
                    self.assertEqual(rows[name], troubleshooter(np.asarray(a), np.asarray(b)))
        self.assertEqual(rows["extra"], ["False", "0.00%", "nan", "nan, nan"])

    def test_msprobes_table(self):
        record, _ = self.rows("compare a b --as msprobe --csv probe.csv")
        with open(self.folder / "probe.csv", newline="") as file:
            rows = {row["NPU Name"]: row for row in csv.DictReader(file)}
        keys = ["Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio",
                "Five Thousandths Err Ratio"]
        for name in ("same", "close", "warn", "twice", "nonfinite", "alike", "halves"):
            a, b = self.pairs[name]
            with self.subTest(name):
                got, want = [rows[name][key] for key in keys], msprobe(np.asarray(a), np.asarray(b))
                for one, other in zip(got, want):
                    if isinstance(other, str):
                        self.assertEqual(one, other)
                    else:
                        tolerance = 2e-3 if np.asarray(a).dtype == np.float16 else 1e-5
                        self.assertTrue(math.isclose(float(one), other, rel_tol=tolerance, abs_tol=1e-11) or
                                        float(one) == other, (one, other))
        self.assertEqual(rows["shape"]["Cosine"], "shape unmatched")
        self.assertEqual(rows["scalar"]["Cosine"], "unsupported")
        self.assertEqual(float(rows["scalar"]["MaxAbsErr"]), 0.5)


if __name__ == "__main__":
    harness.main()
