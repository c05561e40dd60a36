# SPDX-License-Identifier: GPL-3.0-or-later
"""What is matched with what in two checkpoints or dumps, where they first diverge, and what is said about parameters
and losses."""
import csv
import json
import os
import shutil
import subprocess
import unittest

import harness
import numpy as np
from test_compare import bfloat16, ckpt, gradb, safetensors

# A state dict with an optimizer, saved by PyTorch if it is installed; the values are read from raw files.
SAVE = """
import pathlib, sys
import torch
folder = pathlib.Path(sys.argv[1])
state = {}
for line in (folder / "names").read_text().splitlines():
    name, *shape = line.split()
    data = bytearray((folder / (name + ".raw")).read_bytes())
    state[name] = torch.frombuffer(data, dtype=torch.float32).reshape([int(n) for n in shape])
state["bn1.num_batches_tracked"] = torch.tensor(3)
torch.save({"module." + name: value for name, value in state.items()}, folder / "torch.pth")
trained = [name for name in state if "running" not in name and "num_batches" not in name]
torch.save({"model": state, "optimizer": {"state": {
    i: {"step": 1, "exp_avg": state[name] * 2, "exp_avg_sq": state[name] ** 2} for i, name in enumerate(trained)},
    "param_groups": [{"lr": 0.1, "params": list(range(len(trained)))}]}}, folder / "training.pth")
"""
MINDSPORE = {"bn1.weight": "bn1.gamma", "bn1.bias": "bn1.beta", "bn1.running_mean": "bn1.moving_mean",
             "bn1.running_var": "bn1.moving_variance", "embed.weight": "embed.embedding_table"}


def forward(x, weights, wrong=None):
    """Outputs of a small network by name, in order; `wrong`: a layer that computes something else."""
    outs = [("input", x)]
    for i, weight in enumerate(weights):
        x = x @ weight
        if wrong == f"dense{i}":
            x = x * np.float32(1.01)
        outs.append((f"dense{i}", x))
        x = np.maximum(x, 0)
        outs.append((f"relu{i}", x))
    return outs


class Pairs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = harness.folder_of(cls)
        rng = np.random.default_rng(11)
        shapes = {"conv1.weight": (4, 3, 3), "bn1.weight": (4,), "bn1.bias": (4,), "bn1.running_mean": (4,),
                  "bn1.running_var": (4,), "embed.weight": (12, 4), "fc.weight": (10, 4), "fc.bias": (10,)}
        cls.state = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
        other = {name: value.copy() for name, value in cls.state.items()}
        other["bn1.running_var"] += np.float32(0.25)
        other["conv1.weight"] = other["conv1.weight"][:, :, None]  # MindSpore's Conv1d has one more axis
        ckpt(cls.folder / "mindspore.ckpt", [("network." + MINDSPORE.get(n, n), v) for n, v in other.items()] +
             [("moment1.network." + MINDSPORE.get(n, n), v * 2) for n, v in other.items() if "running" not in n])
        (cls.folder / "names").write_text("".join(f"{n} {' '.join(map(str, v.shape))}\n" for n, v in cls.state.items()))
        for name, value in cls.state.items():
            (cls.folder / f"{name}.raw").write_bytes(value.tobytes())
        python = os.environ.get("GRADB_TORCH_PYTHON", "python3")
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run([python, "-c", SAVE, cls.folder], env=environment, capture_output=True, text=True)
        cls.torch = None if done.returncode == 0 else done.stderr.strip().splitlines()[-1:] or ["no torch"]
        cls.weights = [rng.normal(size=(16, 16)).astype(np.float32) / 4 for _ in range(6)]
        cls.x = rng.normal(size=(8, 16)).astype(np.float32)

    def run_one(self, line):
        (record,), done = gradb(line, cwd=self.folder)
        return record, done.returncode

    def verdicts(self, line):
        record, status = self.run_one(line)
        return {(row.get("a"), row.get("b")): (row["verdict"], row.get("how")) for row in record["pairs"]}, status

    def write(self, folder, outs, name="{i}_{name}"):
        (self.folder / folder).mkdir(exist_ok=True)
        for i, (layer, value) in enumerate(outs):
            np.save(self.folder / folder / (name.format(i=i, name=layer) + ".npy"), value)

    def test_pytorch_and_mindspore_checkpoints(self):
        if self.torch:
            self.skipTest(f"no PyTorch: {self.torch[0]}")
        found, status = self.verdicts("compare torch.pth mindspore.ckpt --match rules")
        self.assertEqual(status, 6)
        for name in self.state:
            want = "FAIL" if name == "bn1.running_var" else "SAME"
            self.assertEqual((name, found["module." + name, "network." + MINDSPORE.get(name, name)]),
                             (name, (want, "rules")))
        self.assertNotIn(("module.bn1.num_batches_tracked", None), found)
        # the state of Adam, by the number of its parameter
        found, _ = self.verdicts("compare training.pth mindspore.ckpt --match rules --on moment1")
        self.assertEqual({how for verdict, how in found.values() if verdict == "SAME"}, {"rules"})
        self.assertEqual(sum(verdict == "SAME" for verdict, _ in found.values()), 6)
        record, status = self.run_one("check params torch.pth mindspore.ckpt --match rules")
        self.assertEqual((record["totals_a"]["parameters"], record["totals_a"]["buffers"]), (6, 3))
        self.assertEqual(record["totals_a"]["elements"], sum(v.size for n, v in self.state.items() if "running" not in n))
        self.assertEqual(record["never_updated"], 6)

    def test_maps(self):
        a = [("left", "F32", self.x), ("twin", "F32", self.x + 1)]
        b = [("right", "F32", self.x), ("other", "F32", self.x + 1)]
        safetensors(self.folder / "a.safetensors", a)
        safetensors(self.folder / "b.safetensors", b)
        record, status = self.run_one("compare a.safetensors b.safetensors --match rules")
        self.assertEqual((record["type"], status), ("error", 1))
        self.assertIn("nothing was compared: ", record["message"])
        text, _ = gradb("compare a.safetensors b.safetensors --match rules", cwd=self.folder, text=True)
        for side, names in (("MISSING-B", ("left", "twin")), ("MISSING-A", ("right", "other"))):
            for name in names:
                self.assertRegex(text, rf"{side} +{name}")
        want = {("left", "right"): ("SAME", "map"), ("twin", "other"): ("SAME", "map")}
        for text in ('{"left": "right", "twin": "other"}', '[{"left": "right", "twin": "other"}, {}]',
                     "# names\nleft: right\n'twin': other\n", "right: left\nother: twin\n", "Cell:\n  left: right\n  twin: other\n",
                     "- ms_api: left\n  pt_api: right\n  ms_args: [0, x]\n  pt_args: [0,x]\n-  pt_api: other\n   ms_api: twin\n"):
            (self.folder / "map").write_text(text)
            found, status = self.verdicts("compare a.safetensors b.safetensors --match name --map map")
            self.assertEqual((text, found, status), (text, want, 0))
        found, _ = self.verdicts("compare a.safetensors b.safetensors")
        self.assertEqual(found, {pair: ("SAME", "values") for pair in want})
        np.save(self.folder / "turned.npy", self.x.T)
        np.save(self.folder / "straight.npy", self.x)
        row = self.run_one("compare turned.npy straight.npy")[0]["pairs"][0]
        self.assertEqual(row["verdict"], "SHAPE")
        self.assertIn("transposed?", row["note"])
        for text, said in (('[{"left": "right"}, {"left": "mine.swap"}]', "mine.swap"),
                           ('[{"left": "right"}, {"twin": ""}]', "does not name"), ('{"left": 3}', "is not a name"), ('{"a": "b", "a": "c"}', "twice"), ("{", "line 1"),
                           ("left right", "line 1"), ("a: &x b", "names only"), ("", "no names"), ("- ms_api: a", "lack"),
                           ("- ms_api: left\n  pt_api: right\n  ms_args: [0, 1]\n  pt_args: [1, 0]\n", "different orders, which is not supported: [0, 1]"),
                           ("- ms_api: left\n  to: right\n", "line 2"), ("- ", "line 1"), ("- ms_api: a\n  pt_api: b\n  ms_args: [0]", "different orders")):
            (self.folder / "map").write_text(text)
            record, status = self.run_one("compare a.safetensors b.safetensors --map map")
            self.assertEqual((record["type"], status), ("error", 1))
            self.assertIn(said, record["message"])

    def test_values_tell_tensors_apart_that_have_the_same_moments(self):
        """Max, mean, mean size and norm are equal; for the first two also the sums of cubes."""
        half = {"a": (0, 4, 7, 11, 20), "b": (1, 2, 9, 10, 20), "c": (1, 5, 6, 9), "d": (2, 3, 7, 9)}
        a, b, c, d = (np.tile(np.array(half[name] + tuple(-n for n in half[name]), np.float32), 9).reshape(9, -1)
                      for name in "abcd")
        for one, other in ((a, b), (c, d)):
            self.assertEqual([one.max(), one.sum(), np.abs(one).sum(), (one ** 2).sum()],
                             [other.max(), other.sum(), np.abs(other).sum(), (other ** 2).sum()])
        safetensors(self.folder / "p.safetensors", [("one", "F32", a), ("two", "F32", c)])
        safetensors(self.folder / "q.safetensors", [("three", "F32", a.T.copy()), ("four", "F32", b), ("five", "F32", d)])
        found, _ = self.verdicts("compare p.safetensors q.safetensors --match values")
        self.assertEqual(found, {("one", "three"): ("SHAPE", "values"), ("two", None): ("MISSING-B", None),
                                 (None, "four"): ("MISSING-A", None), (None, "five"): ("MISSING-A", None)})

    def test_calls_of_two_frameworks(self):
        """API names of MindSpore and PyTorch, by the rules."""
        for side, names in (("ms", ("Mint.add.0.forward", "Functional.dense.0.forward", "Tensor.swapaxes.0.forward",
                                    "MintFunctional.relu.0.forward", "Functional.flatten.0.forward")),
                            ("pt", ("Torch.add.0.forward", "Functional.linear.0.forward", "Tensor.transpose.0.forward",
                                    "Functional.relu.0.forward", "Torch.flatten.0.forward"))):
            folder = self.folder / f"api_{side}" / "step0" / "rank0"
            folder.mkdir(parents=True)
            element = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.0,
                       "Mean": 0.5, "Norm": 1.0}
            folder.joinpath("dump.json").write_text(json.dumps({
                "task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
                "data": {name: {"input_args": [], "input_kwargs": {}, "output": [element]} for name in names}}))
        found, status = self.verdicts("compare api_ms api_pt --match rules")
        self.assertEqual(set(found.values()), {("STAT-OK", "rules")}, found)
        self.assertEqual((len(found), status), (5, 0))

    def test_a_session_and_its_step_before(self):
        """Every value held, like `compare TENSOR` for one; of a dump, the previous step."""
        lines = ["set keep-previous weights", "step 2", "step", "compare @1 prev --csv {}/prev.csv", "compare head.bias",
                 "compare @1:prev @1 --on Default/network/head.bias"]
        args = harness.typed(*(line.format(self.folder) for line in lines))
        done = harness.run_gradb("-nx", "-q", "--batch", "--json", "--listen", "127.0.0.1:0", *args, "run", "--",
                                 harness.CHARLM, "--data", harness.SOURCE / "COPYING", "--seed", 7, "--threads", 1,
                                 "--steps", 9, *harness.SMALL)
        whole, back = harness.records(done, "compare")[:2]
        (one,) = harness.records(done, "comparison")
        (row,) = [row for row in whole["pairs"] if row["b"] == "Default/network/head.bias:0"]
        self.assertEqual((row["max_abs"], row["step"], row["how"]), (one["difference"]["max_abs"], 3, "name"))
        self.assertEqual((back["pairs"][0]["max_abs"], back["b"]), (row["max_abs"], "@1"))
        self.assertEqual(back["worst"][0]["index"], one["elements"][0]["index"])
        with open(self.folder / "prev.csv", newline="", encoding="utf-8") as file:
            self.assertEqual(len(list(csv.DictReader(file))), len(whole["pairs"]))
        if not (self.folder / "dump_a").exists():
            self.write_dump("dump_a", True)
        records, _ = gradb("open dump_a", "compare @1 prev", cwd=self.folder)
        self.assertIn("has no previous step", records[-1]["message"])
        records, _ = gradb("open dump_a", "step", "compare @1 prev --on fc1", cwd=self.folder)
        pair = records[-1]["pairs"][1]
        self.assertEqual((pair["b"], pair["verdict"]), ("Default_fc1-Dense_MatMul-op1:in0", "FAIL"))
        self.assertEqual(pair["max_abs"], float(np.abs(self.x).max()))
        for command in ("first-divergence @1 @1:prev", "first-divergence @1:prev @1", "first-nonfinite @1:prev"):
            records, _ = gradb("open dump_a", "step", command, cwd=self.folder)
            self.assertIn("@1:prev: only `compare` takes the previous step", records[-1]["message"])

    def test_first_divergence_finds_the_wrong_layer(self):
        self.write("pt", forward(self.x, self.weights))
        self.write("ms", forward(self.x, self.weights, "dense3"), "{name}_float32_{i}")
        record, status = self.run_one("first-divergence ms pt")
        self.assertEqual(status, 6)
        self.assertEqual((record["node"], record["last_good"], record["label"]), ("7_dense3", "6_relu2", "UNKNOWN-IN"))
        self.assertEqual(record["how"], "rules")
        # without one layer's file the interval is wider, and that layer is to be dumped
        (self.folder / "ms" / "dense3_float32_7.npy").unlink()
        record, _ = self.run_one("first-divergence ms pt")
        self.assertEqual((record["node"], record["dump_next"]), ("8_relu3", ["7_dense3"]))
        record, _ = self.run_one("first-divergence ms pt --bisect")
        self.assertEqual(record["node"], "8_relu3")

    def write_dump(self, root, wrong):
        """Two steps of four operators, with inputs, as MindSpore's synchronous dump lays them out."""
        for step in (1, 2):
            folder = self.folder / root / "rank_0" / "Net" / "0" / str(step)
            folder.mkdir(parents=True)
            x = self.x * np.float32(step)
            for i, (kind, name) in enumerate((("MatMul", "fc1-Dense_MatMul-op1"), ("ReLU", "relu-ReLU_ReLU-op2"),
                                              ("MatMul", "fc2-Dense_MatMul-op3"), ("Log", "Log-op4"))):
                y = x * np.float32(1.5) + np.float32(wrong and step == 2 and i == 2)
                with np.errstate(all="ignore"):
                    y = np.log(x) if kind == "Log" and step == 2 else y
                for side, value in (("input", x), ("output", y)):
                    at = 1700000000000000 + 1000 * step + i
                    np.save(folder / f"{kind}.Default_{name}.0.0.{at}.{side}.0.DefaultFormat.npy", value)
                x = y

    def test_dumps_with_inputs(self):
        if not (self.folder / "dump_a").exists():
            self.write_dump("dump_a", True)
        self.write_dump("dump_b", False)
        record, status = self.run_one("first-divergence dump_a dump_b")
        self.assertEqual((record["step"], record["node"], record["op"], record["label"], status),
                         (2, "Default_fc2-Dense_MatMul-op3", "MatMul", "ORIGIN", 6))
        self.assertEqual((record["inputs"], record["inputs_agree"], record["last_good"]),
                         (1, 1, "Default_relu-ReLU_ReLU-op2"))
        (_, record), _ = gradb("open dump_a", "first-divergence @1 dump_b --step 1", cwd=self.folder)
        self.assertEqual((record["found"], record["checked"]), (False, 4))
        record, _ = self.run_one("compare dump_a dump_b --step 2")
        self.assertEqual({row["b"]: row["verdict"] for row in record["pairs"] if row["verdict"] != "SAME"},
                         {"Default_fc2-Dense_MatMul-op3:0": "FAIL", "Default_Log-op4:in0": "FAIL",
                          "Default_Log-op4:0": "NONFINITE"})
        row = self.run_one("compare dump_a dump_b --steps 2,1 --on fc1")[0]["pairs"][1]
        self.assertEqual((row["verdict"], row["b"]), ("FAIL", "Default_fc1-Dense_MatMul-op1:in0"))
        (record,), _ = gradb("compare dump_a dump_b --steps 2,99", cwd=self.folder)
        self.assertIn("dump_b has no step 99: it has 1 to 2", record["message"])
        shutil.copytree(self.folder / "dump_b", self.folder / "dump_half")
        for path in (self.folder / "dump_half").rglob("*/1/*.output.*.npy"):
            np.save(path, np.load(path) * np.float32(1.0005))
        record, _ = self.run_one("compare dump_half dump_b --step 1")
        self.assertEqual({row["b"] for row in record["pairs"] if "float16" in row.get("note", "")},
                         {"Default_fc1-Dense_MatMul-op1:0", "Default_fc2-Dense_MatMul-op3:0"})
        record, _ = self.run_one("first-nonfinite dump_b")
        self.assertEqual((record["step"], record["node"], record["kind"]), (2, "Default_Log-op4", "throw-point"))
        self.assertIn("logarithm", record["hint"])

    def test_of_a_loop_the_last_time_counts(self):
        for name, digests in (("loop_a", "xz"), ("loop_b", "yz")):
            step = self.folder / name / "rank_0/net/0/1"
            step.mkdir(parents=True)
            step.joinpath("statistic.csv").write_text(
                "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,MD5\n" + "".join(
                    f'Add,Add-op1,0,0,{time},output,0,8,float32,"(2,)",{digest}\n'
                    for time, digest in enumerate(digests, 1)))
        row = self.run_one("compare loop_a loop_b")[0]["pairs"][0]
        self.assertEqual((row["b"], row["verdict"], row["note"]), ("Add-op1:0", "SAME", "by checksum"))

    def test_bfloat16_is_quiet_under_the_right_profile(self):
        outs = forward(self.x, self.weights[:2])
        safetensors(self.folder / "f32.safetensors", [(name, "F32", value) for name, value in outs])
        safetensors(self.folder / "bf16.safetensors", [(name, "BF16", value) for name, value in outs])
        record, status = self.run_one("first-divergence bf16.safetensors f32.safetensors")
        self.assertEqual((record["found"], status), (False, 0))
        record, status = self.run_one("first-divergence bf16.safetensors f32.safetensors --profile numpy")
        self.assertEqual((record["node"], status), ("input", 6))
        record = self.run_one("compare bf16.safetensors:input f32.safetensors:input")[0]
        row = record["pairs"][0]
        score = np.abs(bfloat16(self.x).astype(float) - self.x) / (1e-2 + 1.6e-2 * np.abs(self.x.astype(float)))
        self.assertEqual(record["worst"][0]["index"], list(np.unravel_index(score.argmax(), score.shape)))
        self.assertEqual((len(record["worst"]), record["ulp"]), (10, [self.x.size]))
        self.assertEqual((row["type_a"], row["verdict"], row["ulp99"]), ("bfloat16", "PASS", 0))
        self.assertEqual(row["max_abs"], float(np.abs(bfloat16(self.x).astype(float) - self.x).max()))

    def test_first_nonfinite(self):
        outs = forward(self.x, self.weights[:2])
        mask = np.where(self.x > 0, np.float32(0), np.float32(-np.inf))
        broken = outs[2][1].copy()
        broken[1, 1] = np.nan
        self.write("nan", [outs[0], ("masked_fill", mask), ("new_empty", mask + np.float32(np.nan)), ("log", broken)])
        record, status = self.run_one("first-nonfinite nan")
        self.assertEqual((record["node"], record["nan"], record["kind"], status), ("3_log", 1, "unknown-in", 6))
        self.write("good", outs)
        record, status = self.run_one("first-nonfinite good")
        self.assertEqual((record["found"], status), (False, 0))

    def test_losses(self):
        (self.folder / "a.log").write_text("begin\nstep: 1, loss: 2.5, overflow:False, scale:1024\n"
                                           "step: 2, loss: 2.25, overflow:True, scale:1\nstep: 3, loss: nan\n")
        (self.folder / "b.log").write_text("step: 2, loss: 2.0\nstep: 1, no number\nstep: 3, loss: nan\n")
        record, status = self.run_one("compare loss a.log b.log")
        self.assertEqual((record["by_step"], record["pairs"], record["first_step"], status), (True, 2, 2, 6))
        self.assertEqual((record["max_abs"], record["max_rel"]), (0.25, 0.25 / 2.25))
        row = record["loss"][0]
        self.assertEqual((row["losses"], row["nonfinite"], row["overflows"], row["longest_run"], row["least_scale"]),
                         (3, 1, 1, 1, 1))
        self.assertEqual(self.run_one("compare loss a.log b.log rtol=0.2")[1], 0)
        self.assertIn("--tag", self.run_one("compare loss a.log b.log --tag psnr")[0]["message"])

    def test_losses_of_loss_monitor(self):
        """MindSpore's callback: steps restart in each epoch, and a non-finite loss ends the training."""
        lines = [f"epoch: {epoch} step: {step}, loss is {2.5 - 0.25 * epoch - 0.125 * step}"
                 for epoch in (1, 2) for step in (1, 2, 3)]
        first, second = self.folder / "a.log", self.folder / "b.log"
        first.write_text("\n".join([*lines[:3], "epoch time: 1000.123 ms, per step time: 5.3 ms", *lines[3:]]) + "\n")
        lines[4] = "epoch: 2 step: 2, loss is 1.5"
        second.write_text("\n".join(lines[1:]) + "\n")
        record, status = self.run_one("compare loss a.log b.log")
        self.assertEqual((record["by_step"], record["pairs"], record["first_epoch"], record["first_step"], status),
                         (True, 5, 2, 2, 6))
        text, _ = gradb("compare loss a.log b.log", cwd=self.folder, text=True)
        self.assertIn("at epoch 2, step 2: 1.75 and 1.5", text)
        first.write_text("epoch: 1 step: 1, loss is 2.25\nValueError: epoch: 1 step: 2. Invalid loss, terminating training.\n")
        row = self.run_one("compare loss a.log")[0]["loss"][0]
        self.assertEqual((row["losses"], row["nonfinite"]), (2, 1))
        for line, loss, step in (
                ("2021-03-04 10:00:00 epoch: 3 step: 7, loss is 0.5; per step time: 5.000 ms", 0.5, 7),
                ("{ Epoch:[  1/  2], step:[   12/ 1000], loss: 11.25, per_step_time: 300ms, loss_scale: 1024.0}", 11.25, 12),
                ("epoch: [  0/ 90], step:[   41/ 5004], loss:[6.75/6.9], lr: 0.1", 6.75, 41),
                ("step 8 loss_scale: 1024, loss is -0.125", -0.125, 8)):
            first.write_text(line + "\n")
            second.write_text(f"step: {step}, loss: {loss}\n")
            record, status = self.run_one("compare loss a.log b.log rtol=0")
            self.assertEqual((record["pairs"], record["by_step"], record["differ"], status), (1, True, False, 0), line)

    def test_text_and_errors(self):
        self.write("one", [("a", self.x)])
        self.write("two", [("a", self.x)])
        text, done = gradb("compare one two", cwd=self.folder, text=True)
        self.assertRegex(text, r"SAME +0_a +float32 +\(8, 16\) +100.00%")
        self.assertIn("1 pair: 1 SAME", text)
        for line, said in (("compare one missing.npy", "no such file"), ("compare one two --as excel", "msprobe"),
                           ("compare one two --tol x", "PATTERN"), ("compare @7 one", "no session 7"),
                           ("first-divergence one", "two sides"), ("check params names", "names")):
            record, status = self.run_one(line)
            self.assertEqual((line, record["type"], status), (line, "error", 1))
            self.assertIn(said, record["message"])


if __name__ == "__main__":
    harness.main()
