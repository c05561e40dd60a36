# SPDX-License-Identifier: GPL-3.0-or-later
"""One network in PyTorch and in MindSpore, dumped by msprobe and by MindSpore itself: first-divergence says that they
agree, names the layer that is wrong in one of them, and accepts bfloat16 for float32 where it may."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import harness
import numpy as np
import venvs

HERE = pathlib.Path(__file__).resolve().parent
FAULTS = {"eps": "bn1", "weight": "fc1", "transposed": "fc2"}  # and the layer that is wrong then


MINDSPORE = venvs.python("mindspore")
MSPROBE = venvs.python("msprobe")


def values():
    """Weights and batches for both."""
    random = np.random.RandomState(3)

    def weight(*shape):
        return ((random.rand(*shape) * 2 - 1) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    def bias(count):
        return (random.rand(count) * 0.2 - 0.1).astype(np.float32)

    return {"conv1.weight": weight(4, 1, 5, 5), "conv1.bias": bias(4), "bn1.weight": np.linspace(0.25, 0.5, 4),
            "bn1.bias": bias(4), "fc1.weight": weight(16, 144), "fc1.bias": bias(16), "fc2.weight": weight(16, 16),
            "fc2.bias": bias(16), "fc3.weight": weight(10, 16), "fc3.bias": bias(10),
            "x": random.randn(2, 8, 1, 16, 16) * 0.5, "y": random.randint(0, 10, (2, 8)).astype(np.int32)}


def run(*words, **more):
    """Fails with the program's output."""
    env = dict(os.environ, OMP_NUM_THREADS="1", GLOG_v="3", **more)
    done = subprocess.run(words, env=env, text=True, capture_output=True, timeout=6 * harness.DEADLINE, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout[-1000:] + done.stderr[-3000:])


@unittest.skipUnless(MINDSPORE and MSPROBE, "no build/mindspore-venv or build/msprobe-venv: ./dev test makes them where "
                                            "pip can install packages")
class Frameworks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="gradb-frameworks-")
        root = pathlib.Path(cls.folder.name).resolve()
        np.savez(root / "values.npz", **{name: value.astype(np.float32) if value.dtype == np.float64 else value
                                         for name, value in values().items()})
        (root / "data_dump.json").write_text(json.dumps({
            "common_dump_settings": {"dump_mode": 0, "path": str(root / "mindspore"), "net_name": "net",
                                     "iteration": "all", "saved_data": "tensor", "input_output": 0, "kernels": [],
                                     "support_device": list(range(8))},
            "e2e_dump_settings": {"enable": True, "trans_flag": True}}))
        run(MINDSPORE, HERE / "net_mindspore.py", root / "values.npz", "2",
            MINDSPORE_DUMP_CONFIG=str(root / "data_dump.json"))
        run(MSPROBE, HERE / "probe_torch.py", root / "values.npz", root, "none", "bfloat16", *FAULTS)
        cls.root = root

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def found(self, a, b, *options):
        """The record of first-divergence."""
        done = harness.run_gradb("-q", "-nx", "--json", "--batch", "-ex",
                                 f"first-divergence {self.root / a} {self.root / b} " + " ".join(options))
        record, = harness.records(done, "first-divergence")
        self.assertEqual(done.returncode, 6 if record["found"] else 0)
        return record

    def test_they_agree(self):
        for pair in (("none", "mindspore"), ("mindspore", "none")):
            record = self.found(*pair)
            self.assertFalse(record["found"], record)
            self.assertGreaterEqual(record["matched"], 20)

    def test_the_wrong_layer_is_named(self):
        for fault, layer in FAULTS.items():
            for a, b in ((fault, "mindspore"), ("mindspore", fault)):
                with self.subTest(fault=fault, b=b):
                    record = self.found(a, b)
                    self.assertEqual((record["step"], record["verdict"], record["how"]), (0, "FAIL", "rules"))
                    torch, mindspore = (record["node_a"], record["node"]) if a == fault else \
                        (record["node"], record["node_a"])
                    self.assertTrue(torch.startswith(layer + "/"), torch)
                    self.assertIn(f"/{layer}-", mindspore)
                    # an attribute is the operator's own; a weight is an input
                    self.assertEqual(record["label"], "ORIGIN" if fault == "eps" else "INHERITED")
                    if fault != "eps":
                        self.assertRegex(record["bad_input"], f"/{layer}-.*MatMul-op0:in1|{layer}/.*linear.*:in1")

    def test_bfloat16(self):
        quiet = self.found("bfloat16", "none", "--step", "0")
        self.assertFalse(quiet["found"], quiet)
        strict = self.found("bfloat16", "none", "--step", "0", "--profile", "strict")
        self.assertEqual((strict["label"], strict["verdict"]), ("ORIGIN", "FAIL"))
        self.assertIn("conv2d", strict["node"])
        wrong = self.found("eps", "bfloat16", "--step", "0")
        self.assertTrue(wrong["node"].startswith("bn1/"), wrong)


if __name__ == "__main__":
    harness.main()
