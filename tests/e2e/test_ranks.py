# SPDX-License-Identifier: GPL-3.0-or-later
"""Two trainers in C as ranks of one job: their launcher's environment says which is which, libgradb computes the
digests that `rank check` and `catch divergence` compare. One of them sees one batch of garbage."""
import shlex
import tempfile
import unittest

import numpy

import harness

STEP = 25  # in which the second rank's batch is garbage: see charlm's faults
K = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def mix(number):
    for shift, multiplier in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        number = ((number ^ (number >> shift)) * multiplier) & MASK
    return number


def digest(array):
    data = array.tobytes()
    padded = data + bytes(-len(data) % 8)
    words = (int.from_bytes(padded[at:at + 8], "little") for at in range(0, len(padded), 8))
    return mix((sum(mix((word + (i + 1) * K) & MASK) for i, word in enumerate(words)) + len(data)) & MASK)


class Ranks(unittest.TestCase):
    def records(self, *commands):
        """The JSON lines of gradb after the commands on the two ranks."""
        charlm = [str(word) for word in (
            harness.CHARLM, "--data", harness.SOURCE / "COPYING", "--seed", 7, "--threads", 1, "--steps", 60,
            *harness.SMALL, "--batch", 4)]
        script = "RANK=0 {0} & RANK=1 {0} --fault bad-batch; wait".format(" ".join(map(shlex.quote, charlm)))
        done = harness.run_gradb("-q", "-nx", "--json", "--batch", *harness.typed(*commands), "--listen", "127.0.0.1:0",
                                 "run", "--", "/bin/sh", "-c", script, env={"WORLD_SIZE": "2"})
        self.status = done.returncode
        lines = harness.records(done)
        self.assertEqual([line for line in lines if line["type"] == "error"], [], done.stderr)
        return lines

    def test_divergence(self):
        name = "Default/network/head.bias"
        with tempfile.TemporaryDirectory() as folder:
            lines = self.records(
                "rank check all", "catch divergence", "continue", "rank check", "rank check *.bias", "rank check gradients",
                *(line for rank in (0, 1) for line in (f"rank {rank}", f"save {name} {folder}/{rank}.npy")))
            saved = ["%016x" % digest(numpy.load(f"{folder}/{rank}.npy")) for rank in (0, 1)]
        agree, differ, biases, gradients = [line for line in lines if line["type"] == "rank_check"]
        self.assertEqual((agree["differing"], agree["ranks"]), ([], [0, 1]))
        self.assertEqual({(line["rank"], line["step"]) for line in lines
                          if line["type"] == "stopped" and line["reason"] == "hit"}, {(1, STEP)})
        self.assertGreater(len(gradients["differing"]), 10)
        self.assertTrue(all(item["name"].endswith(".bias") for item in biases["differing"]))
        self.assertEqual([item["digests"] for item in differ["differing"] if item["name"] == name], [saved])

    def test_a_check_that_fails_is_seen_in_the_status(self):
        for steps, status in ((STEP - 1, 0), (STEP, 6)):
            self.records(f"rank all step {steps}", "rank check", "kill")
            self.assertEqual(self.status, status)

    def test_rank_all_moves_the_job_once(self):
        lines = self.records("rank all step 2", "info ranks", "rank all next", "info ranks", "rank all step", "info ranks",
                             "rank all finish phase", "info ranks", "rank all finish phase", "info ranks", "rank all print loss", "rank all continue")
        places = [[(rank["step"], rank["at_step_end"]) for rank in line["ranks"]]
                  for line in lines if line["type"] == "ranks"]
        self.assertEqual(places, [[(2, True)] * 2, [(3, False)] * 2, [(3, True)] * 2] + [[(4, False)] * 2] * 2)
        phases = [line["node"] for line in lines if line["type"] == "stopped" and line["reason"] == "phase"]
        self.assertEqual(len(phases), 4)  # the end of the forward pass in both, and of the backward pass
        self.assertEqual(phases[:1] * 2 + phases[2:3] * 2, phases)
        self.assertEqual(len([line for line in lines if line.get("command") == "print"]), 2)
        self.assertEqual({line["step"] for line in lines if line["type"] == "finished"}, {60})


if __name__ == "__main__":
    harness.main()
