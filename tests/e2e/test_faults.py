# SPDX-License-Identifier: GPL-3.0-or-later
"""Each mistake that charlm can make is caught by the condition made for it, at the right node and step.

What is right is found out by a second run of the same seed, without watchpoints: it is stepped to the
place, the tensors are saved, and numpy says whether the condition holds there and not one step, or one
operator, earlier.
"""
import tempfile
import unittest

import numpy

import harness

SIZE = ["--layers", "1", "--width", "32", "--heads", "2", "--context", "32", "--batch", "8"]
NETWORK = "Default/network/"


class Run:
    """A run of charlm with one fault, always the same numbers."""

    def __init__(self, fault, *, steps=80, more=()):
        self.fault, self.steps, self.more = fault, steps, more

    def records(self, commands):
        """The JSON lines of gradb after the commands, as a list; and its exit status."""
        done = harness.run_gradb(
            "-q", "-nx", "--json", "--batch", "--listen", "127.0.0.1:0", "run", "--", harness.CHARLM,
            "--data", harness.SOURCE / "COPYING", "--seed", 7, "--threads", 1,
            "--fault", self.fault, "--steps", self.steps, *SIZE, *self.more, script=commands)
        lines = harness.records(done)
        errors = [line for line in lines if line["type"] == "error"]
        assert not errors, errors
        return lines, done.returncode

    def hits(self, *commands):
        """The watchpoint's hits at the stop, those that could be checked; and how gradb ended."""
        lines, status = self.records([*commands, "continue", "info hits -a"])
        listed = [line for line in lines if line.get("command") == "info hits"][-1]["hits"]
        return [hit for hit in listed if not hit.get("error")], status

    def arrays(self, go, *names):
        """Saved tensors at the place that the commands go to, with nothing watched."""
        with tempfile.TemporaryDirectory() as folder:
            self.records([*go, *(f"save {name} {folder}/{i}.npy" for i, name in enumerate(names))])
            return [numpy.load(f"{folder}/{i}.npy").astype(numpy.float64) for i in range(len(names))]


class Faults(unittest.TestCase):
    def only_hit(self, hits):
        self.assertEqual(len({(hit["node"], hit["step"]) for hit in hits}), 1, hits)
        return hits[0]["node"], hits[0]["step"]

    def first_bad(self, hits, run):
        """The exact stop's node is not finite, nothing that ran before it in the step was."""
        node, step = self.only_hit(hits)
        here, = run.arrays([f"step {step - 1}", f"run-to {node}"], node)
        self.assertFalse(numpy.isfinite(here).all(), f"{node} is finite in step {step}")
        lines, _ = run.records([f"step {step - 1}", f"run-to {node}", f"info node {node}"])
        inputs = [i["node"] for i in lines[-1]["inputs"] if not i.get("control")]
        self.assertTrue(inputs)
        for value in run.arrays([f"step {step - 1}", f"run-to {node}"], *inputs):
            self.assertTrue(numpy.isfinite(value).all(), f"an input of {node} is not finite")
        lines, status = run.records(["trace TO on all", f"step {step - 1}", "info hits"])
        self.assertEqual(lines[-1]["hits"], [], "something was not finite before")
        return node, step

    def test_nan_log(self):
        run = Run("nan-log")
        hits, status = run.hits("watch TO on all")
        self.assertEqual(status, 4)
        node, _ = self.first_bad(hits, run)
        self.assertRegex(node, r"^Default/network/loss/Log-op\d+$")

    def test_fp16_overflow(self):
        run = Run("fp16-overflow")
        hits, status = run.hits("watch TO on all except parameters")
        self.assertEqual(status, 4)
        node, step = self.first_bad(hits, run)
        self.assertRegex(node, r"^(Default|Gradients)/")
        # What would have told earlier: elements at the edge of the range of half precision.
        lines, _ = run.records(["trace -step 'max_abs > 30000' on all except parameters",
                               f"step {step - 1}", "info hits -a"])
        self.assertTrue(lines[-1]["hits"])

    def test_exploding_lr(self):
        run = Run("exploding-lr")
        hits, status = run.hits("watch WCL abs_mean_update_ratio_gt=1 on weights except *.bias")
        self.assertEqual(status, 4)
        step = hits[0]["step"]
        for hit in hits:
            self.assertEqual(hit["step"], step)
            before, = run.arrays([f"step {step - 1}"], hit["node"])
            after, = run.arrays([f"step {step}"], hit["node"])
            ratio = numpy.abs(after - before).mean() / (numpy.abs(before).mean() + 1e-9)
            self.assertGreater(ratio, 1)
            actual = [p["actual"] for p in hit["params"] if p["name"] == "abs_mean_update_ratio_gt"]
            self.assertAlmostEqual(actual[0] / ratio, 1, places=5)
        names = [hit["node"] for hit in hits]
        earlier, = run.arrays([f"step {step - 2}"], names[0])
        before, = run.arrays([f"step {step - 1}"], names[0])
        self.assertLessEqual(numpy.abs(before - earlier).mean() / (numpy.abs(earlier).mean() + 1e-9), 1)

    def test_dead_relu(self):
        run = Run("dead-relu")
        hits, status = run.hits("watch DU", "watch AR range_start_inclusive=-1 range_end_inclusive=0 "
                                "range_percentage_gt=99.9 on activations:relu")
        self.assertEqual(status, 4)
        node, step = self.only_hit(hits)
        self.assertRegex(node, r"mlp/ReLU-op\d+$")
        self.assertEqual(step, 1)  # the range shows at once; dead units want five steps
        value, = run.arrays(["step"], node)
        self.assertGreater((value == 0).mean(), 0.999)
        hits, _ = run.hits("watch DU")
        node, step = self.only_hit(hits)
        self.assertRegex(node, r"mlp/ReLU-op\d+$")
        self.assertEqual(step, 5)

    def test_frozen_weight(self):
        run = Run("frozen-weight")
        hits, status = run.hits("watch WNC")
        self.assertEqual(status, 4)
        node, step = self.only_hit(hits)
        self.assertEqual((node, step), (NETWORK + "block0/mlp/fc.weight", 2))
        rtol, = [p for p in hits[0]["params"] if p["name"] == "rtol"]
        self.assertEqual(rtol["value"], 1e-5)
        self.assertNotIn("actual", rtol)  # it is no test by itself
        other = NETWORK + "block0/mlp/proj.weight"
        before = run.arrays(["step"], node, other)
        after = run.arrays(["step 2"], node, other)
        self.assertTrue((before[0] == after[0]).all())
        self.assertFalse(numpy.allclose(before[1], after[1], rtol=1e-5, atol=1e-8))

    def test_zero_init(self):
        run = Run("zero-init")
        lines, _ = run.records(["watch WI", "recheck", "info hits -a"])
        hits = lines[-1]["hits"]
        self.assertEqual({hit["step"] for hit in hits}, {0})
        found = {hit["node"] for hit in hits}
        names = [w["node"] for w in run.records(["info params -a"])[0][-1]["params"] if w["kind"] == "weight"]
        zero = {name for name, value in zip(names, run.arrays([], *names)) if not value.any()}
        self.assertIn(NETWORK + "block0/attn/qkv.weight", zero)
        self.assertEqual(found, zero)

    def test_vanishing(self):
        run = Run("vanishing")
        limits = "range_start_inclusive=-0.99 range_end_inclusive=0.99"
        hits, status = run.hits(f"watch AR {limits} range_percentage_lt=25 on activations:tanh")
        self.assertEqual(status, 4)
        node, step = self.only_hit(hits)
        self.assertRegex(node, r"mlp/Tanh-op\d+$")
        self.assertEqual(step, 1)
        value, = run.arrays(["step"], node)
        inside = (numpy.abs(value) <= 0.99).mean() * 100
        self.assertLess(inside, 25)
        actual = [p["actual"] for p in hits[0]["params"] if p["name"] == "range_percentage_lt"]
        self.assertAlmostEqual(actual[0], inside, places=6)

    def test_bad_batch(self):
        run = Run("bad-batch")
        hits, status = run.hits("watch LS mean_z_score_gt=5")
        self.assertEqual(status, 4)
        self.assertEqual([(hit["scalar"], hit["step"]) for hit in hits], [("loss", 25)])
        names = [n["node"] for n in run.records(["info nodes type:Data"])[0][-1]["nodes"]]
        before = run.arrays(["step 24"], *names)
        bad = run.arrays(["step 25"], *names)
        self.assertTrue(any((b == b.max()).mean() > 0.9 > (a == a.max()).mean() for a, b in zip(before, bad)))

    def test_correct_trainer_is_left_alone(self):
        run = Run("none", steps=40)
        lines, status = run.records(["watch TO on all", "watch WNC", "watch GE", "watch DU", "watch LN",
                                     "watch LS", "watch GM", "watch FC on gradients",
                                     "watch WCL abs_mean_update_ratio_gt=1 on weights except *.bias",
                                     "continue"])
        self.assertEqual(status, 0, lines[-3:])


if __name__ == "__main__":
    harness.main()
