# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of statistics: msprobe's two monitors of a training on the CPU, in their own format; grad_probe at all levels
from an independent writer, on two ranks; and broken ones."""
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
import venvs
from dumptool import gradb

HERE = pathlib.Path(__file__).resolve().parent


@unittest.skipUnless(venvs.python("msprobe"), "no build/msprobe-venv: ./dev makes it where pip can install packages")
class Monitors(unittest.TestCase):
    def test_both(self):
        with tempfile.TemporaryDirectory(prefix="gradb-figures-") as home:
            done = subprocess.run([venvs.python("msprobe"), HERE / "write_monitor.py", home], text=True, capture_output=True,
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


class Tables(unittest.TestCase):
    """Tests with a directory for their files."""
    @classmethod
    def setUpClass(cls):
        cls.dir = harness.folder_of(cls)

    def put(self, name, header, *rows):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows([header, *rows])
        return path


class GradProbe(Tables):
    def test_levels(self):
        """Steps and ranks; digests; shares of intervals; saved signs."""
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
                       r"L2 norm +2\.5\n", r"\(-1\.0, 0\.0\]: 0\.5", r"\[ ?True +True +False +True\]", r"NaN +at least 1\b",
                       r"type +grad, gradient", r"grad-probe +4 "):
            self.assertRegex(text, wanted)
        text = gradb(self.dir / "l0", "info node w.grad", "stats w.grad")
        self.assertRegex(text, r"digest of :0 crc32:0badcafe")
        self.assertRegex(text, r"elements +3 ")

    def test_broken(self):
        """Invalid rows are reported with their lines; the others are read."""
        self.put("bad/rank0/grad_summary_1.csv", ["param_name", "max", "min", "norm", "shape"], ["a", "1", "0"], [""],
                 ["b", "x", "", "1e999", "[9999999999999999999, 3]"], ["c" * 5000, "1", "1", "1", "[1]"])
        self.put("bad/Nov22_08-41-10-rank7-de30794b/actv_0-9.csv", ["vpp_stage", "name", "step", "norm", "entropy"],
                 ["0", "a", "x", "1", "1"], ["2", "a", "4", "nan", "0.25"], ["0", "", "4", "1", "1"])
        text = gradb(self.dir / "bad", "info formats", "info scalars", "stats a.grad", "rank 7", "info nodes",
                     "info scalars")
        for wanted in (r"line 2: the row has no step", r"line 4: the row has no name", r"vpp2/a\.actv",
                       r"a\.entropy", r"max +1\n"):
            self.assertRegex(text, wanted)


class Atb(Tables):
    """The transformer library's dump: a table, and tensors with a text header."""
    HEADER = ("Device and PID,Execution Count,Op Name,Op Type,Op Id,Input/Output,Index,Dtype,Format,Shape,Max,Min,Mean,"
              "Norm,Tensor Path").split(",")

    def tensor(self, name, array, code, **more):
        lines = {"format": 2, "dtype": code, "dims": ",".join(map(str, array.shape)), **more}
        head = f"$Version=1.0\n$Object.Count=1\n$Object.Length={array.nbytes}\n"
        head += "".join(f"{key}={value}\n" for key, value in lines.items()) + "$End=1\n"
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(head.encode() + array.tobytes())
        return path

    def test_tree(self):
        values = np.array([[1.5, -2], [3, 4]], "f2")
        name = "data/0_77/0/3_Linear/after/outtensor0.bin"
        self.tensor("atb/" + name, values, 1)
        self.put("atb/statistic.csv", self.HEADER,
                 ["0_77", 0, "3_Linear", "LinearOperation", "3", "output", 0, "float16", "ND", "2,2", 4, -2, 1.625, 5.6,
                  "/gone/atb/" + name],
                 ["0_77", 1, "3_Linear", "LinearOperation", "3", "input", 1, "float32", "ND", "3", "nan", "N/A", "N/A",
                  "N/A", "N/A"], ["0_77", "x", "", "", "", "", "", "", "", "", "", "", "", "", "../../etc/passwd"])
        text = gradb(self.dir / "atb", "print 3_Linear:0", "info node 3_Linear", "step", "stats 3_Linear:in1",
                     "info formats")
        for wanted in (r"1 nodes?, 2 steps from 0 to 1", r"\[\[ ?1\.5 +-2\. ?\]", r"type +LinearOperation", r"id = 3",
                       r"NaN +at least 1\b", r"line 4: the row has no name or no execution count", r"(?m)^atb +1 "):
            self.assertRegex(text, wanted)

    def test_tensors_alone(self):
        bf16 = np.array([0x3FC0, 0xC000], "u2")
        for name, array, code, shown in (("a.bin", np.arange(3, dtype="i8"), 9, r"int64 \(3,\)"),
                                         ("b.bin", bf16, 27, r"(?s)bfloat16 \(2,\).*\[ ?1\.5 +-2\. ?\]"),
                                         ("c.bin", np.array([True, False]), 12, r"(?s)bool.*True +False")):
            text = gradb(self.tensor("alone/" + name, array, code), "print tensor")
            self.assertRegex(text, shown, name)
        for name, more, told in (("far.bin", {"data": "/else"}, r"are in another file"),
                                 ("type.bin", {"dtype": 99}, r"not a known element type"),
                                 ("dims.bin", {"dims": "2,x"}, r"is not a shape"),
                                 ("long.bin", {"dims": "1000000,1000000"}, r"fewer than its shape needs")):
            self.assertRegex(gradb(self.tensor("bad/" + name, np.zeros(2, "f4"), 0, **more)), told)
        (self.dir / "bad" / "cut.bin").write_bytes(b"$Version=1.0\ndtype=0\n")
        self.assertRegex(gradb(self.dir / "bad" / "cut.bin"), r"\$End=")


class Results(Tables):
    def test_beside_a_dump_and_alone(self):
        """Rows that did not pass become events of the dump's nodes; files that are not read are reported."""
        folder = self.dir / "run" / "step0" / "rank0"
        folder.mkdir(parents=True)
        (folder / "dump.json").write_text(json.dumps({"task": "statistics", "level": "L1", "data": {
            "Torch.add.0.forward": {"output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1],
                                                "Max": 1.0, "Min": 1.0, "Mean": 1.0, "Norm": 1.0}]}}}))
        columns = ["NPU Name", "Bench Name", "Cosine", "MaxAbsErr", "Result", "Err_message", "NPU_Stack_Info"]
        self.put("run/compare_result_rank0_20240501102030.csv", columns,
                 ["Torch.add.0.forward.output.0", "b", "0.5", "inf\t", "error", "far off", "File x"],
                 ["Torch.add.0.forward.input.0", "b", "1.0", "0.0", "pass", "", "File x"],
                 ["Torch.gone.0.forward.input.0", "N/A", "unsupported", "N/A", "Warning", "No bench data matched.", ""])
        self.put("run/accuracy_checking_result_20240501102030.csv",
                 ["API Name", "Forward Test Success", "Backward Test Success", "Message"],
                 ["Torch.add.0", "pass", "error", "grad"], ["Torch.relu.0", "pass", "SKIP", ""])
        (self.dir / "run" / "dump_data.trend.db").write_bytes(b"SQLite format 3\0")
        text = gradb(self.dir / "run", "info events", "info target", "info formats")
        for wanted in (r"compare +Torch\.add\.0\.forward +Torch\.add\.0\.forward\.output\.0: Cosine 0\.5, MaxAbsErr inf, "
                       r"Result error, Err_message far off", r"Torch\.gone.*Warning", r"accuracy .*Backward Test Success error",
                       r"3 rows, of which 2 did not pass", r"2 rows, of which 1 did not pass", r"trend\.db.*trend database"):
            self.assertRegex(text, wanted)
        self.assertNotRegex(text, r"Torch\.relu|forward\.input\.0: Cosine 1\.0")
        self.put("alone/free_benchmark.csv", ["rank", "pert_mode", "stage", "step", "api_name", "max_rel", "dtype", "shape",
                                             "output_index"], ["0", "improve", "forward", "4", "Torch.mm.0", "0.3", "f", "s", "0"])
        self.assertRegex(gradb(self.dir / "alone", "info events"), r"4 +benchmark .*Torch\.mm\.0:.*max_rel 0\.3")


if __name__ == "__main__":
    harness.main()
