# SPDX-License-Identifier: GPL-3.0-or-later
"""lockstep: two charlm trainings side by side, one of which sees a batch of garbage in one step; one beside a dump of
the other; a third that is left alone; Ctrl-C and a training that is killed; one script under two versions of PyTorch."""
import json
import os
import pathlib
import shlex
import signal
import sys
import tempfile
import unittest

import harness
import numpy as np

sys.path[:0] = [str(harness.SOURCE / "tests" / "torch"), str(harness.SOURCE / "tests" / "dump")]
import ms_writer  # noqa: E402  (modules beside other tests)
import torches  # noqa: E402

STEP = 25  # of the batch of garbage: see charlm's faults
CHARLM = [str(word) for word in (
    harness.CHARLM, "--data", harness.SOURCE / "COPYING", "--seed", 7, "--threads", 1, *harness.SMALL, "--batch", 4)]


def beside(*trainings):
    """The command line that starts all of them."""
    script = " & ".join(" ".join(map(shlex.quote, words)) for words in trainings) + " & wait"
    return ["run", "--", "/bin/sh", "-c", script]


def lines_of(run, *commands, **more):
    """The JSON lines of gradb after the commands, and its status."""
    done = harness.run_gradb("-q", "-nx", "--json", "--batch", *harness.typed(*commands), "--listen", "127.0.0.1:0",
                             *run, **more)
    return harness.records(done, mixed=True), done.returncode


def of_type(lines, name):
    """The records of a type."""
    return [line for line in lines if line["type"] == name]


class Lockstep(unittest.TestCase):
    def lines(self, fault, *commands):
        """The JSON lines of gradb after the commands on a good training and one with the fault."""
        good = [*CHARLM, "--steps", "60"]
        lines, self.status = lines_of(beside(good, [*good, "--fault", fault]), *commands)
        return lines

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
        self.assertIn("two different sessions", errors[0])
        self.assertIn("\"step\" or \"node\"", errors[2])
        first, = [line["message"] for line in self.lines("none", "info ranks", "lockstep @1 @2 --steps 1", "rank 1",
                                                         "step 2", "lockstep @1 @2") if line["type"] == "error"]
        self.assertIn("run them to the end of the same step", first)


class Company(unittest.TestCase):
    """A dump that goes along, a third training, other step numbers, and ends that nobody asked for."""

    def test_a_dump_goes_along(self):
        """What a good run left on the disk is the reference of one with a fault, by step and node by node."""
        good = [*CHARLM, "--steps", "40"]
        with tempfile.TemporaryDirectory(prefix="gradb-lockstep-") as folder:
            lines_of(beside(good), f"dump {folder}/dump --steps 2|24-26", "step 27", "kill")
            for by in ("step", "node"):
                with self.subTest(by=by):
                    over, parted = (of_type(lines_of(
                        beside([*good, "--fault", fault]), f"open {folder}/dump", f"lockstep @1 @2 --by {by}",
                        "session 1", "kill")[0], "lockstep")[0] for fault in ("none", "bad-batch"))
                    self.assertEqual((over["ended"], over["steps"], over["left_out"]), ("over", 4, 0), over)
                    self.assertEqual((parted["ended"], parted["step"], parted["steps"]), ("parted", STEP, 2), parted)
                    self.assertIn("embed/Gather", parted["node"])

    def test_parameters_of_a_dump_by_their_own_names(self):
        """What its graph shows in another scope than the training's."""
        with tempfile.TemporaryDirectory(prefix="gradb-lockstep-") as name:
            rank = pathlib.Path(name) / "rank_0"
            (rank / "graphs").mkdir(parents=True)
            (rank / "graphs" / "ms_output_trace_code_graph_0.pb").write_bytes(ms_writer.model(ms_writer.graph(
                "kernel_graph_0", [ms_writer.node(1, ["head.bias"], "BiasAdd", "Default/other-Net/BiasAdd-op1", (3,))],
                [("head.bias", (3,))])))
            for step in (1, 2):
                folder = rank / "net" / "0" / str(step)
                folder.mkdir(parents=True)
                ms_writer.npy(folder / f"Parameter.head.bias.0.0.160000000000000{step}.output.0.DefaultFormat.npy",
                              np.ones(3, "<f4"))
            found = of_type(lines_of(beside([*CHARLM, "--steps", "9"]), f"open {name}",
                                     "lockstep @1 @2 on weights", "session 1", "kill")[0], "lockstep")[0]
        self.assertEqual((found["ended"], {found["node"], found["node_a"]}),
                         ("parted", {"Default/network/head.bias", "Default/other-Net/head.bias"}), found)

    def test_nothing_in_common_is_an_error(self):
        """A dump of another model has no partner for any node: that is not agreement."""
        with tempfile.TemporaryDirectory(prefix="gradb-lockstep-") as folder:
            for step in range(1, 4):
                path = pathlib.Path(folder) / "other" / "rank_0" / "net" / "0" / str(step)
                path.mkdir(parents=True)
                np.save(path / f"Pad.Default_Pad-op1.0.0.{1700000000000000 + step}.output.0.DefaultFormat.Float32.npy",
                        np.zeros((3, 3, 3), np.float32))
            lines, status = lines_of(beside([*CHARLM, "--steps", "9"]), f"open {folder}/other",
                                     "lockstep @1 @2 --by step", "session 1", "kill")
        self.assertEqual([line["type"] for line in lines if line.get("command") == "lockstep"], ["error"])
        self.assertIn("no tensor was compared", of_type(lines, "error")[0]["message"])
        self.assertEqual(status, 1)

    def test_nothing_in_common_does_not_run_on(self):
        """Without a common node, both still end each step together."""
        other = shlex.quote(str(harness.BUILD / "tests" / "agent" / "agent_trainer"))
        script = f'{shlex.join([*CHARLM, "--steps", "60"])} & {other} "$GRADB_ADDRESS" 60 & wait'
        lines, _ = lines_of(["run", "--", "/bin/sh", "-c", script], "set start-timeout 0",
                            "lockstep @1 @2 --steps 2 --by node", "session 2", "kill", "session 1", "kill")
        self.assertIn("no tensor was compared", of_type(lines, "error")[0]["message"])
        ends = of_type(lines, "finished")
        self.assertEqual(len(ends), 2, ends)
        self.assertLessEqual({end["step"] for end in ends}, {2, 3})

    def test_a_third_and_other_numbers(self):
        good = [*CHARLM, "--steps", "60"]
        lines, status = lines_of(
            beside(good, good, good), "lockstep @3 @1 --steps 4 --by step", "info ranks", "session 1", "step 2",
            "lockstep @1 @3 --shift 2 --by step", "lockstep @1 @3")
        done, parted = of_type(lines, "lockstep")
        self.assertEqual((done["ended"], done["steps"]), ("steps", 4))
        ranks, = (line["ranks"] for line in of_type(lines, "ranks"))
        self.assertEqual([(rank["step"], rank["state"]) for rank in ranks],
                         [(4, "stopped"), (0, "stopped"), (4, "stopped")])
        error, = (line["message"] for line in of_type(lines, "error"))
        self.assertIn("(--shift 2)", error)
        self.assertEqual((parted["ended"], parted["step"], parted["step_a"]), ("parted", 4, 6))
        self.assertNotEqual(status, 0)

    def test_interrupted_and_killed(self):
        """Ctrl-C stops both, and they can go on; then one of them dies."""
        endless = [*CHARLM, "--steps", "1000000000"]
        with harness.Gradb("-nx", "--json", command=beside(endless, endless)) as gradb:
            gradb.send("lockstep @1 @2 --steps 2")
            self.assertIn('"ended":"steps"', gradb.expect('.*"type":"lockstep".*').group(0))
            gradb.send("info ranks")
            ranks = json.loads(gradb.expect('.*"type":"ranks".*').group(0))["ranks"]
            self.go(gradb, ranks)
            gradb.interrupt()
            gradb.expect('"code":"interrupted"')
            gradb.send("info ranks")
            ranks = json.loads(gradb.expect('.*"type":"ranks".*').group(0))["ranks"]
            self.assertEqual([rank["state"] for rank in ranks], ["stopped", "stopped"])
            gradb.send(f"lockstep @1 @2 --by step --shift {ranks[0]['step'] - ranks[1]['step']} --steps 1")
            gradb.expect('"type":"lockstep"')
            self.go(gradb, ranks, f"--shift {ranks[0]['step'] - ranks[1]['step']}")
            os.kill(ranks[1]["pid"], signal.SIGKILL)
            self.assertIn('"ended":"lost"', gradb.expect('.*"type":"lockstep".*').group(0))

    def test_kill_ends_the_selected_one(self):
        """The other one was started by the same program, and stays until gradb ends."""
        endless = [*CHARLM, "--steps", "1000000000"]
        lines, status = lines_of(beside(endless, endless), "lockstep @1 @2 --steps 2", "session 2", "kill", "info ranks",
                                 "step")
        states = of_type(lines, "ranks")[-1]["ranks"]
        self.assertEqual([rank["state"] for rank in states][0], "stopped")
        self.assertIn([rank["state"] for rank in states][1:], ([], ["finished"]))
        self.assertEqual((of_type(lines, "stopped")[-1]["step"], status), (3, 0))

    def go(self, gradb, ranks, more=""):
        """Side by side without end; returns when they have come some way."""
        def worked():
            return sum(map(int, pathlib.Path(f"/proc/{ranks[0]['pid']}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))

        before = worked()
        gradb.send(f"lockstep @1 @2 --by step {more}")
        harness.wait_for("a training that moves", lambda: worked() > before + 2)


@unittest.skipUnless(torches.debian() and torches.pip(), "two versions of PyTorch are needed: Debian's and pip's")
class TwoPyTorches(unittest.TestCase):
    """One script under two versions of PyTorch."""

    def test_versions(self):
        random = np.random.RandomState(5)
        shapes = {"conv1.weight": (4, 1, 5, 5), "conv1.bias": (4,), "bn1.weight": (4,), "bn1.bias": (4,),
                  "fc1.weight": (16, 144), "fc1.bias": (16,), "fc2.weight": (16, 16), "fc2.bias": (16,),
                  "fc3.weight": (10, 16), "fc3.bias": (10,), "x": (4, 8, 1, 16, 16)}
        script = harness.SOURCE / "tests" / "compare" / "net_torch.py"
        with tempfile.TemporaryDirectory(prefix="gradb-lockstep-") as folder:
            np.savez(folder + "/values.npz", y=random.randint(0, 10, (4, 8)).astype(np.int32),
                     **{name: (random.rand(*shape) / 5).astype(np.float32) for name, shape in shapes.items()})
            for fault in ("none", "eps"):
                old, new = ([python, str(script), folder + "/values.npz", "4", kind]
                            for python, kind in ((torches.debian(), "none"), (torches.pip(), fault)))
                lines, _ = lines_of(beside(old, new), "lockstep @1 @2 --by node --steps 1",
                                    "lockstep @1 @2 on weights --by step --steps 2", "kill",
                                    env=torches.environment())
                with self.subTest(fault=fault):
                    done = of_type(lines, "lockstep")
                    if fault == "none":
                        self.assertEqual((done[0]["ended"], done[0]["steps"]), ("steps", 1), done)
                        self.assertGreater(done[0]["nodes"], 60)
                        continue
                    self.assertEqual((done[0]["ended"], done[0]["step"]), ("parted", 1), done)
                    self.assertRegex(done[0]["node"], "^net/bn1/batch_norm")


if __name__ == "__main__":
    harness.main()
