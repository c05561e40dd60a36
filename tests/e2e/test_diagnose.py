# SPDX-License-Identifier: GPL-3.0-or-later
"""`diagnose` where no Python runs: charlm's faults, a dump, a MindSpore 1.x process. PyTorch: tests/torch/test_diagnose.py."""
import json
import re
import unittest

import numpy as np

import fake_mindspore as fake
import harness
from fake_mindspore import FakeMindSpore

DATA = harness.SOURCE / "LICENSES" / "MIT.txt"
CHARLM = [str(harness.CHARLM), "--data", str(DATA), "--seed", "7", "--threads", "1", "--layers", "1", "--width", "32",
          "--context", "32", "--batch", "4", "--steps", "400"]


def diagnosed(*words, status):
    """The record of a diagnosis, and what gradb printed."""
    done = harness.run_gradb("-nx", "--json", "--listen", "127.0.0.1:0", *words)
    records = harness.records(done, "diagnosis")
    if done.returncode != status or not records:
        raise AssertionError((done.returncode, done.stdout[-2000:], done.stderr))
    return records[-1], done


class Charlm(unittest.TestCase):
    def rules(self, fault, *options, program=(), status=4):
        record, done = diagnosed("diagnose", "--steps", "120", *options, "--", *CHARLM, "--fault", fault, *program,
                                 status=status)
        self.assertNotIn('"type":"hit"', done.stdout)
        self.assertEqual(record["looked_at"]["steps"], 120)
        return {one["rule"]: one for one in record["findings"]}

    def test_a_healthy_run(self):
        self.assertEqual(self.rules("none", status=0), {})
        self.assertEqual(self.rules("none", program=("--activation", "tanh"), status=0), {})

    def test_the_logarithm_of_0(self):
        found = self.rules("nan-log")
        self.assertEqual(list(found), ["log-of-zero"])  # not what follows from it
        finding = found["log-of-zero"]
        self.assertEqual(finding["verdict"], "fault")
        self.assertIn("takes the logarithm of 0", finding["cause"])
        self.assertTrue(finding["where"][0]["file"].endswith("model.c"))

    def test_a_growing_rate(self):
        found = self.rules("exploding-lr")
        self.assertRegex(found["learning-rate"]["cause"], "^The learning rate is [0-9.]+, [0-9.e+]+ times its value at")

    def test_dead_units(self):
        found = self.rules("dead-relu")
        self.assertEqual([(one["rule"], one["verdict"]) for one in found.values()], [("dead-relu", "suspect")])
        self.assertEqual(self.rules("dead-relu", "--fail-on", "fault", status=0).keys(), found.keys())

    def test_matrices_of_0(self):
        self.assertIn("is all zero", self.rules("zero-init")["bad-weight"]["cause"])

    def test_a_weight_that_nothing_updates(self):
        finding = self.rules("frozen-weight")["not-trained"]
        self.assertIn("Nothing updates Default/network/block0/mlp/fc.weight", finding["cause"])

    def test_half_precision(self):
        self.assertIn("exceeds the range of float16", self.rules("fp16-overflow")["fp16-range"]["cause"])


    def test_saturated_units(self):
        finding = self.rules("vanishing")["saturated"]
        self.assertIn("block0/mlp/Tanh-op19 is saturated, so its gradients vanish", finding["cause"])
        self.assertIn("its weight Default/network/block0/mlp/fc.weight has a root mean square of", finding["advice"])
        self.assertEqual(finding["where"][0]["node"], "Default/network/block0/mlp/fc.weight")

    def test_a_batch_that_makes_the_loss_leap(self):
        finding = self.rules("bad-batch")["bad-batch"]
        self.assertIn("The batch Default/data/input is unusual", finding["cause"])
        self.assertEqual(finding["evidence"][0], "in step 25")


class Dump(unittest.TestCase):
    def setUp(self):
        self.folder = harness.folder_of(self)
        self.step = self.folder / "dump" / "rank_0" / "net" / "0" / "1"
        self.step.mkdir(parents=True)

    def write(self, values):
        for way, value in (("input", values), ("output", np.log(values))):
            np.save(self.step / f"Log.Default_Log-op1.0.0.1700000000000001.{way}.0.DefaultFormat.npy", value)

    def test_one_with_an_infinity(self):
        with np.errstate(divide="ignore"):
            self.write(np.array([1, 0, 2], np.float32))
        record, _ = diagnosed("--batch", "-ex", "diagnose", "open", str(self.folder / "dump"), status=4)
        finding, = record["findings"]
        self.assertEqual((finding["rule"], finding["verdict"]), ("dump-nonfinite", "fault"))
        self.assertIn("Default_Log-op1 (Log) makes NaN or infinity of finite inputs: logarithm of 0", finding["cause"])
        self.assertIn("0 NaN, 0 +Inf, 1 -Inf", finding["evidence"])

    def test_one_without(self):
        self.write(np.array([1, 3, 2], np.float32))
        record, _ = diagnosed("--batch", "-ex", "diagnose", "open", str(self.folder / "dump"), status=0)
        self.assertEqual(record["findings"], [])
        self.assertEqual((record["looked_at"]["steps"], record["looked_at"]["not_checked"]), (1, 0))
        self.assertGreater(record["looked_at"]["tensors"], 0)


class MindSpore(unittest.TestCase):
    def test_a_live_process(self):
        with harness.Gradb("--json") as gradb:
            port = int(gradb.expect(r'"type":"listen".*:(\d+)"').group(1))
            process = FakeMindSpore(port, version="1.9.0", backend="Ascend", steps=6, graphs=[fake.small_graph(nan_step=3)])
            process.start()
            self.addCleanup(process.vanish)
            gradb.expect('"type":"stopped"')
            record = json.loads(gradb.run("diagnose", '"type":"(diagnosis|error)"').string)
        self.assertEqual(record["type"], "diagnosis", record)
        self.assertTrue(record["looked_at"]["watched"])
        self.assertEqual([one["verdict"] for one in record["findings"]], ["fault"], record["findings"])
        self.assertEqual(record["findings"][0]["evidence"][0], "in step 3")


class Names(unittest.TestCase):
    """`info rules` lists each name that a finding of `why` can have, and no other."""

    def test_they_are_those_of_the_sources(self):
        folder = harness.SOURCE / "src" / "engine" / "why"
        text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("why*.c") if path.name != "why_names.c")
        used = set(re.findall(r'"([a-z0-9]+(?:-[a-z0-9]+)*)"', text))
        stated = set(re.findall(r'(?:\d,|= \{)\s*"([a-z0-9]+(?:-[a-z0-9]+)+)"', text))
        stated |= set(re.findall(r'(?:why_say\(\s*ret,|->rule =)\s*(?:[^";]*\? )?"([a-z0-9-]+)"', text))
        record = harness.records(harness.run_gradb("-nx", "--json", "--batch", "-ex", "info rules"), "rules")[-1]
        listed = {one["rule"] for one in record["rules"] if one["evidence"] == "why"}
        self.assertGreater(len(stated), 30)
        self.assertEqual(stated - listed, set())
        self.assertEqual(listed - used, set())


if __name__ == "__main__":
    harness.main()
