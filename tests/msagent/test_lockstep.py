# SPDX-License-Identifier: GPL-3.0-or-later
"""One network in PyTorch and in MindSpore, both running: lockstep, compare and first-divergence agree when they are the
same, and name what is different when they are not."""
import os
import pathlib
import re
import shlex
import subprocess
import unittest

import harness
import numpy as np
import venvs
import warmed

HERE = pathlib.Path(__file__).resolve().parent / "lockstep"
MINDSPORE = venvs.python("mindspore")
PYTORCH = venvs.python("torch")
needed = unittest.skipUnless(MINDSPORE and PYTORCH, "no build/mindspore-venv or build/torch-venv: ./dev test makes them "
                                                    "where pip can install packages")


def values():
    """Weights and batches for both."""
    random = np.random.RandomState(3)
    made = {"x": random.randn(6, 8, 12).astype(np.float32), "y": random.randint(0, 5, (6, 8)).astype(np.int32)}
    for name, shape in {"fc1": (16, 12), "fc2": (16, 16), "fc3": (5, 16)}.items():
        made[name + ".weight"] = ((random.rand(*shape) * 2 - 1) / np.sqrt(shape[1])).astype(np.float32)
        made[name + ".bias"] = (random.rand(shape[0]) * 0.2 - 0.1).astype(np.float32)
    for name in ("bn1", "norm"):
        made[name + ".weight"] = np.linspace(0.5, 1.5, 16, dtype=np.float32)
        made[name + ".bias"] = (random.rand(16) * 0.2 - 0.1).astype(np.float32)
    return made


def started(python, framework):
    """What starts that interpreter's programs, with the framework imported."""
    return warmed.command(python, framework, dict(os.environ, OMP_NUM_THREADS="1", GLOG_v="3", GRADB_DISABLE="1"))


class Pair(unittest.TestCase):
    """What the cases share."""

    def records_of(self, trainings, *commands):
        """What the commands say of two trainings, whose command lines these are."""
        script = " & ".join(shlex.join(words) for words in trainings) + " & wait"
        done = harness.run_gradb("-q", "-nx", "--json", "--batch", "--listen", "127.0.0.1:0",
                                 *harness.typed("set start-timeout 0", *commands), "run", "--", "/bin/sh", "-c",
                                 script, cwd=self.folder, env={"OMP_NUM_THREADS": "1", "GLOG_v": "3"},
                                 timeout=4 * harness.DEADLINE)
        found = harness.records(done, mixed=True)
        self.assertEqual([record["message"] for record in found if record["type"] == "error"], [])
        return [record for record in found if record["type"] in ("lockstep", "compare", "first-divergence")]


@needed
class Frameworks(Pair):
    """A network for which the rules were written."""

    @classmethod
    def setUpClass(cls):
        cls.folder = harness.folder_of(cls)
        np.savez(cls.folder / "values.npz", **values())

    def records(self, fault, *commands, mode="pynative"):
        """What the commands say of both, one of which has a fault."""
        file = str(self.folder / "values.npz")
        return self.records_of((
            [*started(PYTORCH, "torch"), str(HERE / "torch_net.py"), file, fault],
            [*started(MINDSPORE, "mindspore"), str(HERE / "ms_net.py"), file, mode]), *commands)

    def test_they_agree(self):
        """Step by step and node by node; each parameter, gradient, momentum and layer is compared."""
        steps, nodes, compared, first = self.records(
            "none", "lockstep @1 @2 --by step --steps 2", "lockstep @1 @2 --steps 2", "compare @1 @2",
            "first-divergence @1 @2")
        for record, least in ((steps, 80), (nodes, 110)):
            self.assertEqual((record["ended"], record["steps"]), ("steps", 2), record)
            self.assertGreaterEqual(record["tensors"], least, record)
        self.assertGreaterEqual(compared["compared"], 23)
        self.assertEqual({"FAIL", "MISSING-A", "MISSING-B"} & {key for key, count in compared["summary"].items() if count},
                         set(), compared)
        self.assertFalse(first["found"], first)

    def test_graph_mode(self):
        same, = self.records("none", "lockstep @1 @2 --by step --steps 3", mode="graph")
        self.assertEqual((same["ended"], same["steps"]), ("steps", 3), same)
        self.assertGreaterEqual(same["tensors"], 80, same)
        nodes, = self.records("none", "lockstep @1 @2 --steps 3", mode="graph")
        self.assertEqual((nodes["ended"], nodes["steps"]), ("steps", 3), nodes)
        self.assertGreaterEqual(nodes["tensors"], 140, nodes)
        parted, = self.records("lr", "lockstep @1 @2 --by step", mode="graph")
        self.assertEqual((parted["ended"], parted["step"]), ("parted", 1), parted)

    def test_differences(self):
        """The step and what is off first."""
        for fault, step, node in (("weight", 0, "^net/fc2/weight$"), ("transposed", 0, "^net/fc2/weight$"),
                                  ("lr", 1, "^(optimizer/\\w+/)?net/fc1/weight$"), ("eps-batch", 1, "^net/.*grad$"),
                                  ("eps-layer", 1, "^net/.*grad$")):
            for by in ("step", "node"):
                with self.subTest(fault=fault, by=by):
                    parted, first = self.records(fault, f"lockstep @1 @2 --by {by}", "first-divergence @1 @2")
                    self.assertEqual((parted["ended"], parted["step"], first["found"]), ("parted", step, True), parted)
                    self.assertRegex(first["node"], node)
                    if by == "step" or "eps" not in fault:
                        self.assertRegex(parted["node"], node)
                    if first.get("last_good"):  # what PyTorch no longer has is not said to agree
                        self.assertNotRegex(first["last_good"], "(?i)linear|BiasAdd")

    def test_the_layer_is_named(self):
        """An epsilon that is another, from the first step or from the third one on."""
        for fault, step, node, good, mode in (("eps-batch", 1, "net/bn1/batchnorm", "fc1", "pynative"),
                                              ("eps-batch", 1, "net/bn1/batchnorm", "fc1", "graph"),
                                              ("eps-layer", 1, "net/norm/layernorm", "fc2", "pynative"),
                                              ("eps-later", 3, "net/bn1/batchnorm", "fc1", "graph"),
                                              ("eps-later", 3, "net/bn1/batchnorm", "fc1", "pynative")):
            with self.subTest(fault=fault, mode=mode):
                parted, = self.records(fault, "lockstep @1 @2", mode=mode)
                self.assertEqual((parted["ended"], parted["step"]), ("parted", step), parted)
                self.assertEqual({re.sub("_", "", parted[key]).lower() for key in ("node", "node_a")}, {node})
                self.assertIn(parted["last_good"], (f"net/{good}/linear", f"net/{good}/BiasAdd"))


@needed
class Networks(Pair):
    """Networks for which they were not: see nets.py."""

    def setUp(self):
        self.folder = harness.folder_of(self)

    def check(self, net, weight, epsilon, *more):
        """weight: the layer whose weight is changed; epsilon: its node; more: (fault, node) of other differences."""
        file = str(self.folder / "values.npz")

        def words(python, framework, fault):
            return [*started(python, {"pytorch": "torch"}.get(framework, framework)), str(HERE / "nets.py"), framework, net,
                    file, fault]
        subprocess.run(words(PYTORCH, "pytorch", "make"), check=True, timeout=harness.DEADLINE)
        for fault, node, step in (("none", None, None), ("weight", f"net/{weight}/weight", 0), ("epsilon", epsilon, 1),
                                  ("rate", r"optimizer/\w+/net/\w+/weight", 1), *more):
            with self.subTest(fault=fault):
                one, = self.records_of((words(PYTORCH, "pytorch", fault), words(MINDSPORE, "mindspore", "none")),
                                       "lockstep @1 @2 --steps 3")
                if fault == "none":
                    self.assertEqual((one["ended"], one["steps"]), ("steps", 3), one)
                    continue
                self.assertEqual((one["ended"], one["step"]), ("parted", step), one)
                for key in ("node", "node_a"):
                    self.assertRegex(one[key], f"(?i)^{node}$")

    def test_convolutions(self):
        self.check("convolutions", "out", "net/gn1/group_?norm")

    def test_transformer(self):
        self.check("transformer", "block2/attention/k", "net/block1/norm1/layer_?norm",
                   ("transposed", "net/block2/attention/k/weight", 0))

    def test_recurrent(self):
        self.check("recurrent", "hidden", "net/norm/layer_?norm", ("transposed", "net/hidden/weight", 0))


if __name__ == "__main__":
    harness.main()
