# SPDX-License-Identifier: GPL-3.0-or-later
"""`why` on charlm's faults: from what a watchpoint caught to the operator, the batch or the learning rate
that is to blame, in words; `tensor-graph`; and a trainer that goes away."""
import json
import re
import unittest

import harness

DATA = harness.SOURCE / "LICENSES" / "MIT.txt"
CHARLM = [str(harness.CHARLM), "--data", str(DATA), "--seed", "7", "--threads", "1", "--layers", "1", "--width", "32",
          "--context", "32", "--batch", "4", "--steps", "400"]


def run(fault, *commands, json_lines=True):
    """The results of the commands, in order; or the whole text."""
    lines = []
    for command in commands:
        lines += ["-ex", command]
    done = harness.run_gradb("-nx", "-q", "--no-tui", "--batch", *(["--json"] if json_lines else []), "--listen",
                             "127.0.0.1:0", *lines, "-ex", "kill", "run", "--", *CHARLM,
                             *(["--fault", fault] if fault else []))
    if not json_lines:
        return done.stdout
    records = harness.records(done, mixed=True)
    return [record for record in records if record.get("command") not in (None, "run", "kill")], records, done


class Why(unittest.TestCase):
    def why(self, fault, *commands):
        """The record of the last command, which is a `why`, and all records."""
        results, records, done = run(fault, *commands)
        self.assertEqual(results[-1]["type"], "why", done.stdout[-3000:] + done.stderr)
        return results[-1], records

    def verdicts(self, record):
        found = {}
        for line in record["tree"]:
            found.setdefault(line["node"].rsplit("/", 1)[-1], line["verdict"])
        return found

    def test_nan_log(self):
        record, records = self.why("nan-log", "watch TO on all", "continue", "why")
        stop = [r for r in records if r["type"] == "stopped"][-1]
        self.assertEqual(stop["reason"], "hit")
        self.assertEqual(record["origin"]["node_type"], "Log")
        self.assertEqual(record["origin"]["node"], stop["node"])
        self.assertTrue(record["origin"]["file"].endswith("model.c"))
        self.assertEqual(record["origin"]["function"], "loss_forward")
        self.assertIn("node_log", record["origin"]["code"])
        self.assertEqual(record["rule"], "log-of-zero")
        self.assertRegex(record["text"], r"takes the logarithm of 0: \d+ of 128 elements of \S+GatherD-op28 are 0")
        self.assertEqual(self.verdicts(record), {"Log-op29": "bad", "GatherD-op28": "good"})
        self.assertEqual(record["tree"][0]["hits"], ["TO"])
        self.assertTrue(record["tree"][0]["origin"])
        self.assertGreater(record["origin"]["inputs"][0]["stats"]["zero"], 0)

    def test_the_strongest_of_several_hits(self):
        """One that is not finite comes before one that ran earlier, in whichever order they were set."""
        _, records = self.why("nan-log", "watch TO on Log-op29", "continue", "why")
        step = [r for r in records if r["type"] == "stopped"][-1]["step"]
        watches = ["watch -step TO on Log-op29", f"watch -step TL abs_mean_gt=0 on embed/Gather-op1 if step >= {step}"]
        for arm in (watches, watches[::-1]):
            record, records = self.why("nan-log", *arm, "continue", "why")
            self.assertEqual({r["node"].rsplit("/", 1)[-1] for r in records if r["type"] == "hit"},
                             {"Log-op29", "Gather-op1"})
            self.assertTrue(record["node"].endswith("/Log-op29"), record["node"])

    def test_nan_log_from_the_loss_and_the_weights_at_the_end_of_the_step(self):
        """All weights are NaN by then; they were not when the step read them."""
        arm = ("watch TO on all", "continue", "delete", "step")
        record, _ = self.why("nan-log", *arm, "why loss")
        self.assertEqual((record["origin"]["node_type"], record["rule"]), ("Log", "log-of-zero"))
        record, _ = self.why("nan-log", *arm, "why head.weight")
        self.assertEqual((record["origin"]["node_type"], record["rule"]), ("LogGrad", "division-by-zero"))
        self.assertRegex(record["text"], r"as in \S+/Log-op29")
        verdicts = self.verdicts(record)
        self.assertEqual(verdicts["AdamWeightDecay-op84"], "bad")
        self.assertEqual(verdicts["moment1.head.weight"], "unknown")
        self.assertEqual(verdicts["GatherD-op28"], "good")

    def test_nan_log_from_the_step_after(self):
        """In the middle of the next step: through the weight to the gradients of the step before."""
        record, records = self.why("nan-log", "watch TO on all", "continue", "delete", "step", "next 1", "why")
        step = [r for r in records if r["type"] == "stopped"][-1]["step"]
        self.assertEqual(record["node"], "Default/network/embed/Gather-op1")
        self.assertEqual(record["origin"]["node_type"], "LogGrad")
        self.assertIn(f"This was in step {step - 1}.", record["text"])
        self.assertEqual(self.verdicts(record)["token.weight"], "bad")

    def test_fp16_overflow(self):
        record, _ = self.why("fp16-overflow", "watch TO on all", "continue", "why")
        self.assertEqual(record["rule"], "fp16-range")
        self.assertEqual(record["origin"]["node"], "Default/network/loss/Mul-op31")
        self.assertIn("65504", record["text"])
        self.assertIn("half precision", record["text"])
        self.assertIn("Default/network/loss_scale", record["text"])
        self.assertEqual(self.verdicts(record), {"Mul-op31": "bad", "NLLLoss-op30": "good", "loss_scale": "good"})

    def test_bad_batch(self):
        record, records = self.why("bad-batch", "watch LS mean_ratio_gt=1.3", "continue", "why")
        stop = [r for r in records if r["type"] == "stopped"][-1]
        self.assertEqual((stop["reason"], stop["step"]), ("hit", 25))
        self.assertEqual(record["node"], "Default/network/loss/NLLLoss-op30")
        self.assertEqual(record["rule"], "bad-batch")
        self.assertEqual(record["origin"]["node"], "Default/data/input")
        self.assertIn("all 128 of its ids are 56, the last of 57", record["text"])
        self.assertIn("clamped", record["text"])
        self.assertIn("Default/data/target is also unusual", record["text"])
        for when in ("step 24", "step 26"):  # the batches around it are as they should be
            record, _ = self.why("bad-batch", when, "why loss")
            self.assertNotEqual(record["rule"], "bad-batch")
            self.assertFalse("origin" in record, record["text"])
            self.assertIn("Nothing upstream stands out", record["text"])

    def test_exploding_learning_rate_by_a_weight(self):
        record, _ = self.why("exploding-lr", "watch WCL on weights except *.bias", "continue", "why")
        self.assertEqual(record["rule"], "learning-rate")
        self.assertEqual(record["origin"]["node_type"], "AdamWeightDecay")
        self.assertRegex(record["text"], r"The learning rate is [\d.]+, [\d.]+ times its value at step 1")
        self.assertIn("still growing", record["text"])
        self.assertRegex(record["text"], r"The last update changed \S+head.weight by [\d.]+ % of its size")
        self.assertIn("gradients are clipped (clip_norm = 1)", record["text"])

    def test_exploding_learning_rate_by_nan(self):
        record, _ = self.why("exploding-lr", "watch TO on all", "continue", "why")
        self.assertEqual(record["rule"], "learning-rate")
        self.assertIn("exceeds the range of float32", record["text"])
        self.assertRegex(record["text"], r"The learning rate is [\d.e+]+, [\d.e+]+ times its value at step 1")

    def test_a_correct_trainer_has_no_such_fault(self):
        for step, tensor in ((10, "loss"), (30, "loss"), (60, "loss"), (30, "head.weight"), (30, "BiasAdd-op25")):
            record, _ = self.why(None, f"step {step}", f"why {tensor}")
            with self.subTest(step=step, tensor=tensor):
                self.assertEqual(record["rule"], "")

    def test_a_bias_that_starts_at_zero(self):
        record, _ = self.why(None, "watch WCL on head.bias", "continue", "why")
        self.assertEqual(record["rule"], "small-weight")
        self.assertIn("normal for a parameter that starts at 0", record["text"])

    def test_dead_relu(self):
        record, _ = self.why("dead-relu", "watch TZ on activations", "continue", "why")
        self.assertEqual((record["rule"], record["origin"]["node_type"]), ("dead-relu", "ReLU"))
        record, _ = self.why("dead-relu", "step 2", "why Gradients/Default/network/block0/mlp/ReluGrad-op43")
        self.assertEqual((record["looked_for"], record["rule"]), ("zero", "dead-relu"))

    def test_frozen_weight(self):
        record, _ = self.why("frozen-weight", "watch WNC on block0/mlp/fc.weight", "continue", "why")
        self.assertEqual(record["rule"], "not-trained")
        self.assertIn("Nothing updates Default/network/block0/mlp/fc.weight", record["text"])

    def test_text(self):
        text = run("nan-log", "watch TO on all", "continue", "delete", "step", "why NLLLoss-op30", "why NLLLoss-op30 -a",
                   json_lines=False)
        self.assertEqual(len(re.findall(r"(?m)^BAD .*NLLLoss-op30 \(NLLLoss\)  1 \+Inf of 1$", text)), 2, text)
        self.assertRegex(text, r"(?m)^BAD .*Log-op29 \(Log\)  .*-Inf of 128.*<- origin$")
        self.assertRegex(text, r"(?m)^ok .*GatherD-op28 \(GatherD\)  min 0, max ")
        self.assertRegex(text, r"(?m)^#0  \S*model.c:\d+ in loss_forward$")
        self.assertIn("takes the logarithm of 0", text.replace("\n", " "))

    def test_hits_are_on_the_lines(self):
        text = run("nan-log", "watch TO on all", "continue", "why hit 1", "tensor-graph", json_lines=False)
        self.assertRegex(text, r"(?m)^BAD Default/network/loss/Log-op29 \(Log\) \[TO\]  ")
        self.assertRegex(text, r"(?m)^    :0 \[TO\]  float32 \(4, 32\)")
        self.assertRegex(text, r"(?m)^  Default/network/loss/GatherD-op28 \(GatherD, other\), watched by 1$")
        self.assertRegex(text, r"(?m)^    :0  float32 \(\) .*, of step \d+ \(now at step \d+\)$")  # the loss has not run yet

    def test_errors(self):
        results, _, _ = run(None, "why nowhere")
        self.assertEqual(results[-1]["code"], "not_found")
        results, _, _ = run(None, "step", "why hit 1")
        self.assertEqual((results[-1]["code"], results[-1]["message"]), ("not_found", "no watchpoint has fired"))
        results, _, _ = run(None, "step", "why head.weight:7")
        self.assertEqual(results[-1]["type"], "error")

    def test_tensor_graph(self):
        results, _, _ = run(None, "step", "tensor-graph Log-op29", "tensor-graph Log-op29 -d 2")
        near, far = results[-2:]
        self.assertEqual(near["type"], "tensor_graph")
        self.assertEqual([n["node"].rsplit("/", 1)[-1] for n in near["node"]], ["Log-op29"])
        self.assertEqual([n["node"].rsplit("/", 1)[-1] for n in near["inputs"]], ["GatherD-op28"])
        self.assertEqual([n["node"].rsplit("/", 1)[-1] for n in near["outputs"]], ["NLLLoss-op30", "NLLLossGrad-op31"])
        slot = near["inputs"][0]["slots"][0]
        self.assertEqual((slot["dtype"], slot["shape"], slot["stats"]["count"]), ("float32", [4, 32], 128))
        self.assertEqual(near["outputs"][0]["inputs"][0]["node"], near["node"][0]["node"])
        self.assertEqual({n["distance"] for n in far["inputs"]}, {1, 2})
        self.assertIn("Default/network/loss/Softmax-op27", [n["node"] for n in far["inputs"]])

    def test_the_trainer_goes_away(self):
        """What was looked at stays readable; what was not is not known."""
        with harness.Gradb("-nx", "--json", command=["run", "--", *CHARLM]) as gradb:
            gradb.expect('"type":"run"')
            gradb.run("step 2", '"command":"step"')
            gradb.run("why loss", '"command":"why"')
            gradb.run("kill", '"command":"kill"')
            known = json.loads(gradb.run("why NLLLoss-op30", '"command":"why"').string)
            self.assertGreater(len(known["tree"]), 50)
            self.assertTrue(all("stats" in line for line in known["tree"][:5]))
            error = json.loads(gradb.run("why Gradients/Default/network/loss/LogGrad-op32", '"command":"why"').string)
            self.assertEqual((error["type"], error["code"]), ("error", "no_data"))
            gradb.send("quit")
            gradb.finish()


if __name__ == "__main__":
    harness.main()
