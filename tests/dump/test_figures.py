# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of figures: msprobe's two monitors of a training on the CPU, as they themselves write them; grad_probe of all
levels as an independent writer lays it out, on two ranks, and what is broken."""
import csv
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import harness
import numpy as np
from test_msprobe import gradb, probe_python

HERE = pathlib.Path(__file__).resolve().parent


@unittest.skipUnless(probe_python(), "no build/msprobe-venv: ./dev makes it where pip can install packages")
class Monitors(unittest.TestCase):
    def test_both(self):
        with tempfile.TemporaryDirectory(prefix="gradb-figures-") as home:
            done = subprocess.run([probe_python(), HERE / "write_monitor.py", home], text=True, capture_output=True,
                                  env=dict(os.environ, OMP_NUM_THREADS="1"), timeout=20 * harness.DEADLINE, check=False)
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
            kept = json.loads((pathlib.Path(home) / "kept.json").read_text())
            for which in ("first", "second"):
                text = gradb(pathlib.Path(home) / which, "info history fc1/weight.grad_reduced norm", "info steps",
                             "info node fc2/weight.param_updated", "watch norm > 0.0001 on gradients", "continue",
                             "info events")
                told = re.findall(r"(?m)^ +(\d) +([0-9.e-]+)$", text)
                norms = [float(value) for step, value in told if "." in value][:3]
                np.testing.assert_allclose(norms, kept, rtol=1e-4, err_msg=which + text)
                self.assertRegex(text, r"3 steps from 0 to 2")
                self.assertRegex(text, r"type +param_updated, weight")
                self.assertRegex(text, r"(?i)watchpoint 1|Hit|fired")
                if which == "first":
                    self.assertRegex(text, r"1 +anomaly +fc1/weight\.grad_reduced +Rule AnomalyTurbulence")


class GradProbe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory(prefix="gradb-figures-")
        cls.dir = pathlib.Path(cls.home.name)

    @classmethod
    def tearDownClass(cls):
        cls.home.cleanup()

    def put(self, name, header, *rows):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows([header, *rows])
        return path

    def test_levels(self):
        """Steps and ranks; digests; shares of intervals; signs that were saved."""
        bounds = ["(-inf, -1.0]", "(-1.0, 0.0]", "(0.0, inf)", "=0"]
        for rank in (0, 1):
            for step in (5, 10):
                worst = "nan" if (rank, step) == (1, 10) else 0.5 * step
                self.put(f"l2/rank{rank}/grad_summary_{step}.csv", ["param_name", *bounds, "max", "min", "norm", "shape"],
                         ["layers.0.weight", 0.25, 0.5, 0.25, 0.125, worst, -2.0, worst, "[2, 4]"],
                         ["bias", 0, 0, 1, 0, 3.0, 1.0, 5.0, "[4]"])
                signs = self.dir / f"l2/rank{rank}/step{step}"
                signs.mkdir()
                np.save(signs / "layers.0.weight.npy", np.arange(8).reshape(2, 4) % 3 > 0)
        self.put("l0/rank0/grad_summary_3.csv", ["param_name", "MD5", "max", "min", "norm", "shape"],
                 ["w", "0badcafe", "1.0", "-1.0", "2.0", "torch.Size([3])"])
        text = gradb(self.dir / "l2", "info steps", "stats layers/0/weight.grad", "info node layers/0/weight.grad",
                     "print layers.0.weight.grad_direction[1]", "info history bias.grad norm", "rank 1", "goto 10",
                     "stats layers/0/weight.grad", "info formats")
        for wanted in (r"2 ranks, 3 nodes, 2 steps from 5 to 10", r"zeros +1 \(12\.5 %\)", r"max +2\.5\n",
                       r"L2 norm +2\.5\n", r"\(-1\.0, 0\.0\]: 0\.5", r"\[ ?True +True +False +True\]", r"NaN +1\b",
                       r"type +grad, gradient", r"grad-probe +4 "):
            self.assertRegex(text, wanted)
        text = gradb(self.dir / "l0", "info node w.grad", "stats w.grad")
        self.assertRegex(text, r"digest of :0 crc32:0badcafe")
        self.assertRegex(text, r"elements +3 ")

    def test_broken(self):
        """Rows that are none are told with their lines; what else is there is read."""
        self.put("bad/rank0/grad_summary_1.csv", ["param_name", "max", "min", "norm", "shape"], ["a", "1", "0"], [""],
                 ["b", "x", "", "1e999", "[9999999999999999999, 3]"], ["c" * 5000, "1", "1", "1", "[1]"])
        self.put("bad/Nov22_08-41-10-rank7-de30794b/actv_0-9.csv", ["vpp_stage", "name", "step", "norm", "entropy"],
                 ["0", "a", "x", "1", "1"], ["2", "a", "4", "nan", "0.25"], ["0", "", "4", "1", "1"])
        text = gradb(self.dir / "bad", "info formats", "info scalars", "stats a.grad", "rank 7", "info nodes",
                     "info scalars")
        for wanted in (r"line 2: the row has no step", r"line 4: the row has no name", r"vpp2/a\.actv",
                       r"a\.entropy", r"max +1\n"):
            self.assertRegex(text, wanted)


if __name__ == "__main__":
    harness.main()
