# SPDX-License-Identifier: GPL-3.0-or-later
"""Dumps of msprobe: one that mindstudio-probe itself makes of a training on the CPU, values bit for bit; and older
layouts, MindSpore's variant and broken files from an independent writer."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import cann_writer
import harness
import numpy as np
import venvs
from dumptool import gradb

HERE = pathlib.Path(__file__).resolve().parent


@unittest.skipUnless(venvs.python("msprobe"), "no build/msprobe-venv: ./dev makes it where pip can install packages")
class Real(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = harness.folder_of(cls)
        env = dict(os.environ, OMP_NUM_THREADS="1")
        runs = [subprocess.Popen([venvs.python("msprobe"), HERE / "write_msprobe.py", cls.dir / task, task], env=env,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                for task in ("tensor", "statistics")]
        told = [run.communicate(timeout=20 * harness.DEADLINE)[0] for run in runs]
        if any(run.returncode for run in runs):
            raise AssertionError("\n".join(told)[-3000:])

    def test_values_and_order(self):
        wanted = {"x": "fc1/Functional.linear.0.forward:in0", "weight": "fc1/weight",
                  "out": "Module.fc2.Linear.forward.0", "grad": "fc1/weight.grad"}
        kept = np.load(self.dir / "tensor" / "kept.npz")
        lines = [f"save {name} {self.dir}/0.{key}.npy" for key, name in wanted.items()]
        lines += ["backtrace Functional.linear.0.forward", "info node Torch.relu.0.forward", "step"]
        lines += [f"save {name} {self.dir}/1.{key}.npy" for key, name in wanted.items()]
        text = gradb(self.dir / "tensor" / "dump", *lines, "stats Tensor.__truediv__.0.forward", "info target")
        for step in (0, 1):
            for key in wanted:
                read = np.load(self.dir / f"{step}.{key}.npy")
                self.assertEqual((read.dtype, read.shape, read.tobytes()),
                                 (kept[f"{step}.{key}"].dtype, kept[f"{step}.{key}"].shape,
                                  kept[f"{step}.{key}"].tobytes()), (step, key))
        self.assertRegex(text, r"write_msprobe\.py:\d+ in forward")
        self.assertRegex(text, r"Torch\.relu\.0\.forward\n  type +relu, activation, order 2")
        self.assertRegex(text, r"(?s)elements +6 \(24 B\)\n.*\+Inf +[1-6]\b.*msprobe level +mix")

    def test_figures(self):
        """Equal to the JSON, including digests; infinite extremes are reported."""
        found = sorted((self.dir / "statistics").glob("dump/step0/*/dump.json"))
        data = json.loads(found[0].read_text())["data"]
        weight = data["Module.fc1.Linear.forward.0"]["parameters"]["weight"]
        text = gradb(self.dir / "statistics" / "dump", "stats fc1/weight", "step",
                     "stats Tensor.__truediv__.0.forward:0")
        figures = dict(re.findall(r" (min|max|mean|L2 norm) +(\S+)", text.split("Stopped")[0]))
        for key, name in (("max", "Max"), ("min", "Min"), ("mean", "Mean"), ("L2 norm", "Norm")):
            self.assertAlmostEqual(float(figures[key]), weight[name], delta=abs(weight[name]) * 1e-5, msg=key)
        self.assertRegex(text.split("Stopped")[1], r"(?s)\+Inf +at least 1\b")


class Written(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = harness.folder_of(cls)

    def put(self, name, dump, stack=None, construct=None, tensors=None):
        folder = self.dir / name
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "dump_tensor_data").mkdir(parents=True)
        (folder / "dump.json").write_text(dump if isinstance(dump, str) else json.dumps(dump))
        if stack is not None:
            (folder / "stack.json").write_text(json.dumps(stack))
        if construct is not None:
            (folder / "construct.json").write_text(json.dumps(construct))
        for tensor, values in (tensors or {}).items():
            np.save(folder / "dump_tensor_data" / tensor, values)
        return folder

    @staticmethod
    def tensor(values=None, name=None, **more):
        element = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [2]}
        if values is not None:
            element.update(Max=float(np.max(values)), Min=float(np.min(values)), Mean=float(np.mean(values)),
                           Norm=float(np.linalg.norm(values)))
        return {**element, **({"data_name": name} if name else {}), **more}

    def test_mindspore_and_old_stacks(self):
        values = np.array([1.5, -2.0], "f4")
        data = {"Cell.net.fc.Dense.forward.0": {"input_args": [[self.tensor(values, "a.npy"), None]],
                                                "input_kwargs": {"mask": self.tensor(values)},
                                                "output": [self.tensor(values)]},
                "Mint.add.0.forward": {"input_args": [], "output": [self.tensor(
                    Max=float("nan"), Min=float("nan"), Mean=float("nan"), Norm=float("nan"))]}}
        for rank in (0, 3):
            self.put(f"ms/step7/rank{rank}", {"task": "tensor", "level": "mix", "framework": "mindspore",
                                              "dump_data_dir": "/gone", "data": data},
                     {"Mint.add.0.forward": ["File /a, b/net.py, line 12, in construct, \n return x + 1"]},
                     {"Mint.add.0.forward": "Cell.net.fc.Dense.forward.0"}, {"a.npy": values})
        text = gradb(self.dir / "ms", "print net/fc/Dense.forward.0:in0", "info node net/fc/Dense.forward.0",
                     "backtrace Mint.add.0.forward", "stats Mint.add.0.forward")
        self.assertRegex(text, r"2 ranks, 2 nodes, step 7")
        self.assertRegex(text, r"\[ ?1\.5 +-2\. ?\]")
        self.assertRegex(text, r"slot in\d += ?kwargs\.mask|slot in\d +kwargs\.mask")
        self.assertRegex(text, r"/a, b/net\.py:12 in construct\n +return x \+ 1")
        self.assertRegex(text, r"(?s)net/fc/Mint\.add\.0\.forward:0\n +type +float32 \(2,\)\n.*NaN +at least 1\b")

    def test_statistics_that_are_not_finite_fire(self):
        """They prove that such elements exist, but not how many: TO, WO and GE are hits; undecidable ones are counted.
        """
        nan, inf = float("nan"), float("inf")
        rows = {"all": (nan, nan, nan, nan), "mean": (2.0, 1.0, nan, nan), "inf": (inf, 1.0, inf, inf),
                "fine": (2.0, 1.0, 1.5, 3.0)}
        data = {f"Torch.{name}.0.forward": {"input_args": [], "output": [self.tensor(
            Max=row[0], Min=row[1], Mean=row[2], Norm=row[3])]} for name, row in rows.items()}
        data["Module.fc.Linear.forward.0"] = {"input_args": [], "output": [self.tensor([1, 2])], "parameters": {
            "weight": self.tensor(Max=nan, Min=nan, Mean=nan, Norm=nan)}}
        data["Module.fc.Linear.parameters_grad.0"] = {"weight": [self.tensor(Max=nan, Min=nan, Mean=nan, Norm=nan)]}
        for framework in ("pytorch", "mindspore"):
            folder = self.dir / ("not_finite_" + framework)
            self.put(folder.name + "/step0/rank0", {"task": "statistics", "level": "mix", "framework": framework,
                                                    "dump_data_dir": None, "data": data})
            for condition, names in (("TO on all", {"all", "mean", "inf", "fc/weight", "fc/weight.grad"}),
                                     ("WO on fc/weight", {"fc/weight"}), ("GE on fc/weight.grad", {"fc/weight.grad"}),
                                     ("'nan >= 1' on all", {"all", "mean", "fc/weight", "fc/weight.grad"})):
                text = gradb(folder, f"watch {condition}", "scan", "info hits", options=["--json"])
                found = harness.read_records(text)
                hits = {re.sub(r"^.*Torch\.(\w+)\..*", r"\1", hit["node"]) for hit in found[-1]["hits"]
                        if not hit["error"]}
                self.assertEqual((framework, condition, hits), (framework, condition, names))
        text = gradb(folder, "watch 'nan > 5' on *all*", "scan")
        self.assertIn("could not be checked", text)  # at least one: the number is unknown
        self.assertIn("at least 1 NaN of 2", gradb(folder, "first-nonfinite"))

    def test_a_call_of_one_step_alone(self):
        """It is ordered where it ran in that step: its outputs do not come from outside."""
        nan = float("nan")
        bad = self.tensor(Max=nan, Min=nan, Mean=nan, Norm=nan)
        calls = {0: [("begin", [1, 2]), ("pow", [1, 2]), ("mean", [1, 2])],
                 1: [("first", [3, 4]), ("begin", [1, 2]), ("log", None), ("pow", None), ("mean", None)]}
        for step, names in calls.items():
            data, given = {}, self.tensor([1, 2])
            for name, values in names:
                made = bad if values is None else self.tensor(values)
                data[f"Torch.{name}.0.forward"] = {"input_args": [given], "output": [made]}
                given = made
            self.put(f"alone/step{step}/rank0", {"task": "statistics", "level": "L1", "framework": "pytorch",
                                                 "dump_data_dir": None, "data": data})
        text = gradb(self.dir / "alone", "first-nonfinite", "info nodes -a")
        self.assertIn("First non-finite value, step 1: Torch.log.0.forward (log), THROW POINT", text)
        self.assertEqual(re.findall(r"Torch\.(\w+)\.0\.forward$", text, re.M), ["first", "begin", "log", "pow", "mean"])

    def test_findings(self):
        """Overflow check, nan_check, the anomaly analysis, msprobe's own errors; recomputed calls and arguments that
        are not tensors."""
        inf = self.tensor(Max=float("inf"), Min=1.0, Mean=float("inf"), Norm=None)
        data = {"Torch.dropout.0.forward": {"input_args": [self.tensor([1, 2]), {"type": "float", "value": 0.5},
                                                           {"type": "slice", "value": [None, 3, None]}],
                                            "input_kwargs": {"group": {"type": "torch.ProcessGroup",
                                                                       "group_ranks": [0, 3], "group_id": "9"}},
                                            "output": [self.tensor([1, 2], is_nan=False)]},
                "Torch.div.0.forward": {"input_args": [self.tensor([1, 2])], "output": [inf], "is_recompute": True},
                "Torch.mul.0.forward": {"input_args": [inf], "output": [{"type": "torch.Tensor", "shape": [2],
                                                                         "dtype": "torch.float32"}], "is_nan": True}}
        run = self.dir / "found"
        self.put("found/step2/proc77", {"task": "overflow_check", "level": "L1", "framework": "pytorch", "data": {
            "Torch.div.0.forward": data["Torch.div.0.forward"]}})
        folder = self.put("found/step3/proc77", {"task": "nan_check", "level": "L1", "framework": "pytorch",
                                                 "data": data}, construct={"Torch.mul.0.forward": [None, 1]})
        (folder / "dump_error_info.log").write_text("boom at Torch.foo\n  trace\n")
        (run / "step3" / "anomaly_analyze_17.json").write_text(json.dumps(
            {"rank_0": [{"op_name": "Torch.div.0.forward", "data_info": {}, "construct_info": [], "stack_info": {}}],
             "rank_5": [{"op_name": "Torch.mul.0.forward"}]}))
        text = gradb(run, "info steps", "info events", "step", "info node Torch.dropout.0.forward",
                     "info node Torch.div.0.forward", "info node Torch.mul.0.forward", "info formats")
        told = [line for line in text.splitlines() if "Torch." in line and ("overflow" in line or "anomaly" in line)]
        self.assertEqual(len(told), 3, text)
        self.assertRegex(text, r"begins here")
        self.assertRegex(text, r"nan_check: NaN or infinity")
        self.assertRegex(text, r"(?s)in1 += ?0\.5|in1 +0\.5")
        for wanted in (r"\[null,3,null\]", r"kwargs\.group\.group_ranks\W+\[0,3\]", r"recompute\W+true",
                       r"micro step\W+1", r"logged errors, 2 lines: boom at Torch\.foo"):
            self.assertRegex(text, wanted)

    def test_debug_distributed_and_mixed(self):
        """Level debug; xor sums; DTensors; MindSpore's mixed mode, whose halves are one training."""
        values = np.array([3, -4], "f4")
        spread = {"type": "torch.distributed.tensor.DTensor", "dtype": "torch.float32", "shape": [2], "Max": 3.0,
                  "Min": -4.0, "Mean": -0.5, "Norm": 5.0, "requires_grad": True, "device_mesh": [0, 1],
                  "placements": [{"Shard": {"dim": 0}}, {"Replicate": {}}, {"Partial": {"reduce_op": "sum"}}]}
        folder = self.put("debug/step0/rank", "{}")
        (folder / "dump.json").unlink()
        (folder / "debug.json").write_text(json.dumps({"task": "tensor", "level": "debug", "framework": "pytorch",
                                                       "dump_data_dir": "x", "data": {
            "loss.0.debug": self.tensor(values, "loss.0.debug.npy"), "loss_grad.0.debug": {"a": [spread]},
            "sums.0.debug": {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2],
                             "md5": "0x00000000deadbeef"}}}))
        np.save(folder / "dump_tensor_data" / "loss.0.debug.npy", values)
        text = gradb(self.dir / "debug", "print loss.0.debug", "info node loss_grad.0.debug", "stats loss_grad.0.debug",
                     "info node sums.0.debug")
        self.assertRegex(text, r"\[ ?3\. +-4\. ?\]")
        self.assertRegex(text, r"type +debug, gradient")
        self.assertRegex(text, r"placed as Shard\(0\), Replicate, Partial\(sum\) on the device mesh \[0,1\]")
        self.assertRegex(text, r"xor:0x00000000deadbeef")
        for half, call in (("graph", "Cell.net.fc.Dense.forward.0"), ("pynative", "Mint.add.0.forward")):
            for step in (1, 2):
                self.put(f"mixed/{half}/step{step}/rank0", {
                    "task": "statistics", "level": "mix", "framework": "mindspore",
                    "data": {call: {"output": [self.tensor(values)]}}})
        self.assertRegex(gradb(self.dir / "mixed"), r"2 nodes, 2 steps from 1 to 2")

    def test_kernels_of_the_same_step(self):
        """What level L2 dumps next to the calls belongs to the same rank and step."""
        self.put("kernels/step2/rank0", {"task": "statistics", "level": "L1", "data": {
            "Torch.add.0.forward": {"output": [self.tensor([1, 2])]}}})
        kernels = self.dir / "kernels" / "step2" / "20240501102030" / "0"
        kernels.mkdir(parents=True)
        (kernels / "Add.Add_1.3.7.1714558832000000").write_bytes(
            cann_writer.container(outputs=[cann_writer.Tensor(np.arange(4, dtype="f4"))]))
        text = gradb(self.dir / "kernels", "print Add_1", "info formats")
        self.assertRegex(text, r"2 nodes, step 2\.")
        self.assertRegex(text, r"\[ ?0\. +1\. +2\. +3\. ?\]")
        self.assertRegex(text, r"(?s)\nmsprobe +1 .*\ncann +1 ")

    def test_broken(self):
        """Everything before an error is read, the error is reported; nothing outside the directory is opened."""
        good = {"A.b.0.forward": {"output": [self.tensor([1, 2], "../../secret.npy")]},
                "A.c.0.forward": {"output": [{"type": "torch.Tensor", "dtype": 7, "shape": [-1, "x", 1e99]}]},
                "A.d.0.forward": {"output": [{"type": "torch.Tensor", "dtype": "torch.float32",
                                              "shape": [1 << 40, 1 << 40], "Max": "inf", "Min": [], "Mean": {}}]},
                "A.e.0.forward": 3, "A.f.0.forward": None,
                "A.g.0.forward": {"output": "nothing", "input_args": {"type": 5}}}
        whole = json.dumps({"task": "statistics", "data": good})
        self.put("cut", whole[:whole.rindex('"A.f')])
        text = gradb(self.dir / "cut", "stats A.b.0.forward", "stats A.d.0.forward", "info formats")
        self.assertRegex(text, r"4 nodes, step 0")
        self.assertRegex(text, r"(?s)A\.b\.0\.forward:0\n +type +float32 \(2,\)\n +elements +2 .*max +2\n")
        self.assertRegex(text, r"secret\.npy.*is not a file name next to it")
        self.assertRegex(text, r"dump\.json.*ends unexpectedly")
        deep = '{"task": "tensor", "data": {"A.x.0.forward": {"output": ' + "[" * 5000 + "]" * 5000 + "}}}"
        self.put("deep", deep)
        self.assertRegex(gradb(self.dir / "deep"), r"nothing in .* can be read: .*(deep|nest)")
        self.put("config", {"dump": {"dump_path": "/x"}})
        self.assertRegex(gradb(self.dir / "config"), r"no known dump")


if __name__ == "__main__":
    harness.main()
