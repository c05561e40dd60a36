# SPDX-License-Identifier: GPL-3.0-or-later
"""What a MindSpore script and its user notice: gradb's functions in the script, what cannot be attached, scripts with hooks
of their own."""
import re
import sys
import unittest

import harness
import minds

FORCED = """
import sys
import unittest
import mindspore as ms
from mindspore import nn
if sys.argv[1] == "early":
    ms.set_context(device_target="Ascend")
net = nn.Dense(2, 2)
optimizer = nn.SGD(net.trainable_params())
ms.set_context(device_target="Ascend")
"""
CHECKPOINT = """
import mindspore as ms
from mindspore import nn
held = ms.load_checkpoint("styles.step1.ckpt")
net = nn.SequentialCell(nn.Dense(3 * 36, 8), nn.Dense(8, 3))
names = {"fc1.weight", "fc2.bias", "norm.moving_mean", "moments.fc1.weight", "global_step"}
print("held", names <= set(held), held["global_step"].asnumpy())
"""


@minds.needed
class ByHand(minds.Case):
    def test_a_script_without_an_optimizer(self):
        done = self.gradb([self.script("by_hand.py"), "attach"], "step", "info nodes type:Parameter", "checkpoint", "step 2",
                          "info scalars", "continue")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout + done.log)
        for text in ("Stopped at the end of step 1.\nloss = ", ", size = 0\n", "  perceptron/0/weight\n",
                     "checkpoint of step 1: mine1.ckpt\n", "Stopped at the end of step 3.\n"):
            self.assertIn(text, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^size +2 +3$")
        self.assertTrue((self.folder / "mine1.ckpt").exists())
        for text in ("attached True True\n", "gradb: the script called detach(); the training continues\n",
                     "detached False mindspore.nn.cell ", "\ndone\n"):
            self.assertIn(text, done.log)

    def test_it_is_told_how_to_attach(self):
        done = self.gradb([self.script("by_hand.py")], "step")
        self.assertEqual(done.returncode, 3)
        line = ("cannot attach to MindSpore: gradients are computed, but there is no optimizer of MindSpore's: call "
                "gradb.mindspore.attach() before the first step, and gradb.mindspore.step() after each\n")
        self.assertTrue(done.stderr.startswith("warning: " + line), done.stderr)

    def test_a_checkpoint_has_the_names_of_mindspore(self):
        done = self.gradb([self.script("styles.py"), "graph", "cell"], "step", "checkpoint", "step", "kill")
        path = (self.folder / "styles.step1.ckpt").resolve()
        self.assertIn(f"checkpoint of step 1: {path} (", done.stdout + done.log)
        (self.folder / "load.py").write_text(CHECKPOINT)
        self.assertIn("held True [1]\n", self.bare("load.py"))


@minds.needed
class Early(minds.Case):
    def ends(self, program, *commands, **more):
        """What gradb says of a program that never connects."""
        done = harness.run_gradb("-nx", "--batch", *harness.typed(*commands or ["step"]), "run", "--",
                                 *self.words(program), env=self.environment(**more), cwd=self.folder, timeout=4 * harness.DEADLINE)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        return done.stderr

    def test_no_library(self):
        said = self.ends([self.script("styles.py"), "graph", "cell"], GRADB_LIBRARY="/nowhere/libgradb.so.1")
        self.assertRegex(said, r"\Awarning: cannot attach to MindSpore: cannot load libgradb \(.*No such file.*\); set "
                               r"GRADB_LIBRARY to its path\n")
        self.assertEqual(said.count("\n"), 2, said)  # again, when it has ended

    def test_a_device_that_is_not_there(self):
        said = self.ends(["-c", FORCED, "early"])
        self.assertRegex(said, r"\Aerror: \S+ exited with status 1 before it connected; its last output: \w+Error: .*Ascend")
        self.assertEqual(said.count("\n"), 1, said)
        done = self.gradb(["-c", FORCED, "late"], "continue")
        self.assertRegex(done.stdout, r"\nException, step 1\n\w+Error: .*Ascend")


class FakeWheels(unittest.TestCase):
    """Modules of the name, beside the script."""

    def ends(self, source, script="import mindspore"):
        folder = harness.folder_of(self)
        (folder / "mindspore").mkdir()
        (folder / "mindspore" / "__init__.py").write_text(source)
        (folder / "train.py").write_text(script + "\nprint('over')\n")
        return harness.run_gradb("-nx", "--batch", *harness.typed("step", "info log"), "run", "--", sys.executable,
                                 "train.py", cwd=folder)

    def check(self, source, *lacking):
        done = self.ends(source)
        said = re.search(r"\Awarning: cannot attach to MindSpore: (version \S+ lacks (.*); gradb needs a complete "
                         r"MindSpore, 2.7 or later)\n", done.stderr)
        self.assertTrue(said, done.stderr)
        self.assertIn("before it connected: cannot attach to MindSpore: " + said.group(1), done.stderr)
        for name in lacking:
            self.assertIn(name, said.group(2))

    def test_too_old(self):
        self.check("__version__ = '2.5.0'\nclass Model:\n    def train(self):\n        pass\nclass nn:\n    Cell = Optimizer = int\n",
                   "_JitExecutor", "_PyNativeExecutor.grad", "experimental.optim")

    def test_incomplete(self):
        self.check("", "nn.Cell", "Model.train", "_JitExecutor")

    def test_broken(self):
        done = self.ends("raise ImportError('libmindspore_core.so: cannot open shared object file')")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("before it connected; its last output: ImportError: libmindspore_core.so: cannot open shared object "
                      "file\n", done.stderr)
        done = self.ends("raise ImportError('no')", "try:\n    import mindspore\nexcept ImportError:\n    pass")
        self.assertNotIn("cannot attach", done.stderr)


@minds.needed
class Hooked(minds.Case):
    """Modes, sys.excepthook, hooks of cells and a Cell.__call__ of the script's own see what they see without gradb."""

    def look(self, mode, *commands):
        script = self.script("hooked.py")
        bare = self.bare(script, mode)
        done = self.gradb([script, mode, "raise"], *commands)
        done.log = done.stdout + done.log
        self.assertEqual(minds.digests(done.log), minds.digests(bare))
        self.assertEqual(re.findall(r"^untouched .*", done.log, re.M), re.findall(r"^untouched .*", bare, re.M))
        self.assertIn("\ndied of ValueError\nat <module>\n", done.log)
        for step in (1, 2, 3, 4):
            self.assertIn(f"Stopped at the end of step {step}.\n", done.stdout)
        return (re.search(r"^seen .*", text, re.M).group() for text in (done.log, bare))

    def test_pynative(self):
        seen, expected = self.look("pynative", "agent operators on", "step", "step", "next", "step", "step", "continue")
        self.assertEqual(seen, expected)

    def test_graph(self):
        seen, expected = self.look("graph", *4 * ["step"], "continue")
        self.assertEqual(seen, expected)
        self.look("graph", "agent operators on", *4 * ["step"], "continue")  # a rehearsal runs construct once more


if __name__ == "__main__":
    harness.main()
