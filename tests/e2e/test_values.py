# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of a real training run against numpy: what `save` wrote, numpy loads; what `print` shows, numpy
prints the same; what `stats` says, numpy computes."""
import math
import pathlib
import tempfile
import unittest

import numpy as np

import harness

CHARLM = ["--layers", "1", "--width", "32", "--context", "16", "--steps", "200", "--threads", "1",
          "--seed", "3"]


def debug(commands, *options, fault=None):
    """One batch run over charlm. Returns the CompletedProcess, which must have succeeded."""
    with tempfile.TemporaryDirectory(prefix="gradb-values-") as folder:
        data = pathlib.Path(folder) / "text"
        data.write_text("the quick brown fox jumps over the lazy dog. " * 400)
        trainer = [harness.CHARLM, *CHARLM, "--data", data]
        if fault:
            trainer += ["--fault", fault]
        done = harness.run_gradb("--no-tui", "-q", "-nx", "--batch", *options, "--listen",
                                 "127.0.0.1:0", "run", "--", *trainer, script=[*commands, "kill"])
    if done.returncode != 0:
        raise AssertionError(f"gradb ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


def records(done):
    return harness.records(done, mixed=True)


def slots(step):
    """Names of all tensors that have a value after `step` steps."""
    done = debug([f"step {step}", "tensors -s -a"], "--json")
    table = next(r for r in records(done) if r["type"] == "tensors")
    return [t["name"] for t in table["tensors"] if "error" not in t]


class Values(unittest.TestCase):
    maxDiff = 4000

    def compare(self, names_and_slices, commands, fault=None):
        """Saves each tensor whole, prints it sliced, and compares with numpy's slice of the file."""
        with tempfile.TemporaryDirectory(prefix="gradb-values-") as folder:
            out = pathlib.Path(folder)
            lines = list(commands)
            for i, (name, piece) in enumerate(names_and_slices):
                lines += [f"save {name} {out}/{i}.npy", f"print {name}{piece} > {out}/{i}.txt"]
            debug(lines, fault=fault)
            arrays = []
            for i, (name, piece) in enumerate(names_and_slices):
                array = np.load(out / f"{i}.npy")
                arrays.append(array)
                part = eval("array" + piece, {"array": array, "None": None})  # pylint: disable=W0123
                title, summary, values = (out / f"{i}.txt").read_text().split("\n", 2)
                self.assertTrue(title.endswith(f" = {name}{piece}"), title)
                self.assertTrue(summary.startswith(f"{part.dtype} {part.shape}"), summary)
                self.assertEqual(values, str(part) + "\n", title)
            return arrays

    def test_every_tensor_prints_as_numpy_prints_it(self):
        names = slots(2)
        self.assertGreater(len(names), 100)
        self.compare([(name, "") for name in names], ["step 2"])

    def test_slices(self):
        weight = "Default/network/block0/attn/qkv.weight:0"
        scores = "Default/network/block0/attn/Softmax-op10:0"
        pieces = ["[0]", "[-1]", "[:2]", "[1:3, ::7]", "[::-1, 0]", "[5, 6]", "[..., -1]",
                  "[:, None, :2]", "[40:, :]", "[3:3]", "[::16, ::48]", "[-2:, -3:]"]
        deep = ["[0, 0]", "[1, ..., 0]", "[:, :, 0, 0]", "[::4, ::2, ::8, ::8]", "[0, 0, 15, 3]"]
        self.compare([(weight, p) for p in pieces] + [(scores, p) for p in deep], ["step"])

    def test_non_finite_values(self):
        """A learning rate that explodes: weights go to NaN, and print as numpy prints them."""
        names = ["Default/network/token.weight:0", "Default/network/head.bias:0",
                 "Default/network/loss/NLLLoss-op30:0"]
        arrays = self.compare([(name, "") for name in names], ["step 150"], fault="exploding-lr")
        self.assertFalse(all(np.isfinite(a).all() for a in arrays))

    def test_statistics_agree_with_numpy(self):
        names = ["Default/network/token.weight:0", "Default/network/block0/mlp/GeLU-op19:0",
                 "Default/network/head/BiasAdd-op25:0", "Default/data/input:0"]
        with tempfile.TemporaryDirectory(prefix="gradb-values-") as folder:
            lines = ["step 3"]
            for i, name in enumerate(names):
                lines += [f"stats {name}", f"save {name} {folder}/{i}.npy"]
            table = [r for r in records(debug(lines, "--json")) if r["type"] == "tensor"]
            for i, record in enumerate(table):
                array = np.load(f"{folder}/{i}.npy").astype(np.float64)
                stats = record["stats"]
                self.assertEqual(record["name"], names[i])
                self.assertEqual(record["shape"], list(array.shape))
                self.assertEqual(stats["count"], array.size)
                self.assertEqual(stats["zero"], int((array == 0).sum()))
                self.assertEqual(stats["min"], array.min())
                self.assertEqual(stats["max"], array.max())
                for key, value in (("mean", array.mean()), ("std", array.std()),
                                   ("l2", math.sqrt((array ** 2).sum())),
                                   ("abs_mean", np.abs(array).mean())):
                    self.assertTrue(math.isclose(stats[key], value, rel_tol=1e-6, abs_tol=1e-9),
                                    f"{names[i]} {key}: {stats[key]} is not {value}")
            self.assertEqual(len(table), len(names))

    def test_json_values_are_the_saved_ones(self):
        name = "Default/network/head.bias:0"
        with tempfile.TemporaryDirectory(prefix="gradb-values-") as folder:
            lines = ["step 2", f"print {name}", f"save {name} {folder}/w.npy"]
            record = next(r for r in records(debug(lines, "--json")) if r["type"] == "tensor")
            self.assertEqual(record["step"], 2)
            values = np.array(record["values"], dtype=np.float32)
            np.testing.assert_array_equal(values, np.load(f"{folder}/w.npy"))

    def test_difference_to_the_previous_step(self):
        """diff is the value now minus the value saved a step before."""
        name = "Default/network/block0/mlp/fc.weight"
        with tempfile.TemporaryDirectory(prefix="gradb-values-") as folder:
            debug([f"set keep-previous {name}", "step 2", f"save {name} {folder}/a.npy", "step",
                   f"save {name} {folder}/b.npy", f"save {name} prev {folder}/p.npy",
                   f"save {name} diff {folder}/d.npy"])
            a, b, p, d = (np.load(f"{folder}/{x}.npy") for x in "abpd")
            np.testing.assert_array_equal(p, a)
            np.testing.assert_array_equal(d, b - a)
            self.assertTrue((d != 0).any())

    def test_examine_walks_in_c_order(self):
        name = "Default/network/block0/mlp/fc.weight"
        with tempfile.TemporaryDirectory(prefix="gradb-values-") as folder:
            lines = ["step", f"x/300 {name}[2, 100]", f"save {name} {folder}/w.npy"]
            record = next(r for r in records(debug(lines, "--json")) if r["type"] == "examine")
            flat = np.load(f"{folder}/w.npy").reshape(-1)
            start = 2 * 128 + 100
            np.testing.assert_array_equal(np.array(record["values"], dtype=np.float32),
                                          flat[start:start + 300])


if __name__ == "__main__":
    harness.main()
