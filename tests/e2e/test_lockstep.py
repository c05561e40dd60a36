# SPDX-License-Identifier: GPL-3.0-or-later
"""lockstep: two charlm trainings side by side, one of which sees a batch of garbage in one step."""
import json
import shlex
import unittest

import harness

STEP = 25  # of the batch of garbage: see charlm's faults


class Lockstep(unittest.TestCase):
    def lines(self, fault, *commands):
        """The JSON lines of gradb after the commands on a good training and one with the fault."""
        charlm = [str(word) for word in (
            harness.CHARLM, "--data", harness.SOURCE / "COPYING", "--seed", 7, "--threads", 1, "--steps", 60,
            "--layers", 1, "--width", 16, "--heads", 2, "--context", 16, "--batch", 4)]
        script = "{0} & {0} --fault {1}; wait".format(" ".join(map(shlex.quote, charlm)), fault)
        words = [word for line in commands for word in ("-ex", line)]
        done = harness.run_gradb("-q", "-nx", "--json", "--batch", *words, "--listen", "127.0.0.1:0", "run", "--",
                                 "/bin/sh", "-c", script)
        self.status = done.returncode
        return [json.loads(line) for line in done.stdout.splitlines()]

    def records(self, fault, *commands):
        return [line for line in self.lines(fault, *commands) if line["type"] == "lockstep"]

    def test_node_by_node(self):
        again, parted = self.records("bad-batch", "lockstep @1 @2 --steps 3", "lockstep @1 @2")
        self.assertEqual((again["ended"], again["steps"], again["left_out"]), ("steps", 3, 0))
        self.assertEqual((parted["ended"], parted["step"]), ("parted", STEP))
        self.assertTrue(parted["node"].startswith("Default/data/"), parted)
        self.assertEqual(parted["verdict"], "FAIL")
        self.assertGreater(parted["nodes"], 21 * 100)
        self.assertEqual(self.status, 6)

    def test_step_by_step(self):
        """What is watched is compared: the weights are off once the optimizer has run."""
        parted, = self.records("bad-batch", "watch TO on weights", "lockstep @1 @2 --by step")
        self.assertEqual((parted["ended"], parted["step"], parted["steps"]), ("parted", STEP, STEP - 1))
        self.assertIn(".weight", parted["node"])
        gradients, = self.records("bad-batch", "lockstep @1 @2 on gradients --by step")
        self.assertEqual((gradients["step"], gradients["node"].split("/")[0]), (STEP, "Gradients"))

    def test_tolerance(self):
        """A logarithm without its epsilon: a small difference, until a large one is what is asked for."""
        strict, wide = self.records("nan-log", "lockstep @1 @2 on type:Log --steps 1",
                                    "lockstep @1 @2 on type:Log --steps 2 rtol=0.5 atol=0.5")
        self.assertEqual((strict["ended"], strict["step"]), ("parted", 1))
        self.assertIn("/Log-", strict["node"])
        self.assertEqual((wide["ended"], wide["steps"]), ("steps", 2))

    def test_alike(self):
        over, = self.records("none", "lockstep @2 @1")
        self.assertEqual((over["ended"], over["steps"]), ("over", 59))
        self.assertEqual(self.status, 0)

    def test_errors(self):
        errors = [line["message"] for command in ("lockstep @1 @1", "lockstep @1", "lockstep @1 @2 --by word",
                                                  "lockstep one two")
                  for line in self.lines("none", command) if line["type"] == "error"]
        self.assertEqual(len(errors), 4, errors)
        self.assertIn("two different trainings", errors[0])
        self.assertIn("\"step\" or \"node\"", errors[2])
        first, = [line["message"] for line in self.lines("none", "info ranks", "lockstep @1 @2 --steps 1", "rank 1",
                                                         "step 2", "lockstep @1 @2") if line["type"] == "error"]
        self.assertIn("bring them to the end of the same step", first)


if __name__ == "__main__":
    harness.main()
