# SPDX-License-Identifier: GPL-3.0-or-later
"""Control of a MindSpore training: where it stops, what is seen there, how it ends."""
import re

import harness
import minds

MOVES = """\
Stopped at the end of step 1.
loss = #, lr = 0.01
Stopped at the end of step 4.
loss = #, lr = 0.01
step 5, forward, net/conv/Conv2D (Conv2D)
styles.py:#\t        x = self.relu(self.norm(self.conv(x)))
step 5, forward, net/norm/BatchNorm (BatchNorm)
styles.py:#\t        x = self.relu(self.norm(self.conv(x)))
step 5, forward, net/fc1/BiasAdd (BiasAdd)
styles.py:#\t        return self.fc2(self.relu(self.fc1(self.flatten(x))))
Stopped at the end of the forward phase, step 5, criterion/SparseSoftmaxCrossEntropyWithLogits (SparseSoftmaxCrossEntropyWithLogits)
styles.py:#\t        return criterion(net(x), y)
"""

BREAKS = """\
Continuing.
Breakpoint 1, step #, forward, net/relu/ReLU (ReLU)
styles.py:#\t        x = self.relu(self.norm(self.conv(x)))
Continuing.
Breakpoint 1, step #, forward, net/relu/ReLU_1 (ReLU)
styles.py:#\t        return self.fc2(self.relu(self.fc1(self.flatten(x))))
Continuing.
Temporary breakpoint 2, step #, forward, net/fc2/MatMul (MatMul)
styles.py:#\t        return self.fc2(self.relu(self.fc1(self.flatten(x))))
Continuing.
Breakpoint 1, step #, backward, backward/net/relu/ReLU_1 (ReLUBackward)
"""


@minds.needed
class Control(minds.Case):
    def styles(self, mode, style, *commands):
        return self.said([self.script("styles.py"), mode, style], *commands, "kill")

    def test_moves(self):
        for mode in ("pynative", "graph"):
            with self.subTest(mode=mode):
                said = self.styles(mode, "own", "step", "step 3", "next", "next", "next 4", "finish phase")
                self.assertTrue(said.startswith(MOVES), said)

    def test_breakpoints(self):
        for mode, style in (("pynative", "model"), ("graph", "jitted")):
            with self.subTest(mode=mode):
                said = self.styles(mode, style, "agent operators on", "step 2", "break type:ReLU*",
                                   "tbreak net/fc2/MatMul", *4 * ["continue"], "info breakpoints")
                said = said[said.index("Continuing.\n"):]
                self.assertTrue(re.sub(r"step 3", "step #", said).startswith(BREAKS), said)
                self.assertRegex(said, r"(?m)^1 .*type:ReLU")
                self.assertNotIn("fc2/MatMul", said[said.index("\nNum "):])

    def test_values(self):
        done = self.gradb([self.script("styles.py"), "pynative", "own"], "set on-error continue", "step",
                          "print net/fc2/bias.grad", "print optimizer/Adam/net/fc2/bias.moment1",
                          "print net/fc2/bias prev", "step 2", "print net/fc2/bias", "print net/fc2/bias diff", "kill")
        said = done.stdout
        self.assertRegex(done.stderr, "^error: the previous value of net/fc2/bias was not kept; it is kept from now on")
        self.assertEqual(re.findall(r"^\$\d = (.*)$", said, re.M), [
            "net/fc2/bias.grad:0", "optimizer/Adam/net/fc2/bias.moment1:0", "net/fc2/bias:0",
            "net/fc2/bias:0, change from step 2 to step 3"], said)
        self.assertIn("\nchanged: 3 of 3 elements", said)
        # Adam's first moment after one step is a tenth of the gradient.
        gradient, moment = (
            [float(number) for number in re.search(rf"= {name}:0\n.*\n\[(.*)\]\n", said).group(1).split()]
            for name in ("net/fc2/bias.grad", "optimizer/Adam/net/fc2/bias.moment1"))
        for one, other in zip(gradient, moment):
            self.assertAlmostEqual(one / 10, other, places=6)

    def test_a_statistic_is_of_the_step_in_which_its_operator_has_run(self):
        said = self.styles("pynative", "own", "step 2", "next", "next", "print net/norm/moving_mean",
                           "print net/fc1/bias")
        self.assertIn("step 3, forward, net/norm/BatchNorm (BatchNorm)\n", said)
        self.assertEqual(re.findall(r"^\$\d = (.*)$", said, re.M),
                         ["net/norm/moving_mean:0", "net/fc1/bias:0, of step 2 (now at step 3)"])

    def test_a_compiled_step_has_no_gradient_until_operators_are_watched(self):
        done = self.gradb([self.script("styles.py"), "graph", "jitted"], "step 2", "print net/fc2/bias.grad")
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: the step ran compiled, its gradients are inside", done.stderr)
        for looks in ("agent operators on", "watch 'max > 1e9' on *.grad"):
            said = self.styles("graph", "jitted", looks, "step 4", "print net/fc2/bias.grad")
            self.assertIn("\n$1 = net/fc2/bias.grad:0\nfloat32 (3,) n=3 ", said)

    def test_gradients_are_watched_from_the_next_step_on(self):
        for style in ("cell", "own"):  # compiled as a whole, and with gradients that Python sees
            for before, step in (((), 1), (("step 2",), 3)):
                with self.subTest(style=style, step=step):
                    done = self.gradb([self.script("styles.py"), "graph", style], *before, "watch 'max > -1' on *.grad",
                                      "step", "kill")
                    self.assertIn(f"\nWatchpoint 1, at the end of step {step}.\n", done.stdout)
                    self.assertNotIn("could not be checked", done.stdout)

    def test_nodes(self):
        for mode in ("pynative", "graph"):
            with self.subTest(mode=mode):
                said = self.styles(mode, "cell", "step", "next", "step", "info nodes -a", "info node net/relu/ReLU")
                kinds = {name: kind for kind, name in re.findall(
                    r"^[ \d]+ \w+ +(weight|parameter|gradient|activation|other) .*?(\S*/\S*)(?:  <= current)?$", said, re.M)}
                for name, kind in (("net/conv/weight", "weight"), ("net/norm/moving_mean", "parameter"),
                                   ("net/fc1/weight.grad", "gradient"), ("net/relu/ReLU", "activation"),
                                   ("backward/net/fc1/MatMul", "gradient"), ("net/conv/Conv2D", "other"),
                                   ("optimizer/Momentum/net/fc1/weight", "other"),
                                   ("optimizer/Momentum/net/fc1/weight.moments", "parameter")):
                    self.assertEqual(kinds.get(name), kind, f"{name}\n{said}")
                self.assertRegex(said, r"(?m)^  input +net/norm/BatchNorm \(BatchNorm\)$")

    def test_what_operators_read(self):
        """Copies of views are not nodes of their own; what no operator was seen to make is one."""
        said = self.styles("pynative", "transformer", "step", "info node net/MatMulExt", "info node net/AddExt",
                           "info node net/wide/MatMul")
        self.assertEqual(re.findall(r"^  input +(\S+) ", said, re.M), [
            "net/query/Reshape_1", "net/Transpose", "net/embedding/Reshape_1", "net/MatMulExt_1", "net/wide/Reshape",
            "net/wide/weight"])

    def test_a_mask_of_the_data_is_an_input(self):
        for mode in ("pynative", "graph"):
            with self.subTest(mode=mode):
                said = self.gradb([self.script("masks.py"), mode], "watch TO on all", "continue", "why", "delete", "step",
                                  "info node net/SumExt", "kill").stdout
                self.assertIn("Watchpoint 1, step 3, forward, net/AddExt (AddExt)\n", said)
                self.assertIn("net/AddExt (AddExt) has -Inf only from the mask input/mask, which is", said)
                self.assertIn("  reads input/mask:0\n", said)
                self.assertRegex(said, r"(?m)^  input +net/\w*Slice\w* ")  # MindSpore does not report it

    def test_backtrace(self):
        for mode, style, caller in (("pynative", "own", "own"), ("graph", "jitted", "jitted")):
            with self.subTest(mode=mode):
                said = self.styles(mode, style, "step 2", "next", "bt")
                self.assertEqual(re.findall(r"^#\d+ +styles\.py:\d+ in (\w+)\n +(.*)$", said, re.M)[0],
                                 ("construct", "x = self.relu(self.norm(self.conv(x)))"), said)
                self.assertRegex(said, rf"styles\.py:\d+ in {caller}\n")
                self.assertRegex(said, r"\(\d+ frames hidden: backtrace all\)")

    def test_a_breakpoint_is_set_before_there_are_operators(self):
        said = self.styles("graph", "cell", "tbreak type:ReLU", "continue")
        self.assertIn("(pending: no node matches yet)\nContinuing.\nTemporary breakpoint 1, step 1, forward, net/relu/ReLU (ReLU)\n",
                      said)

    def test_kill_ends_the_script(self):
        written = self.folder / "digest"
        done = self.gradb([self.script("styles.py"), "graph", "model", "8", written], "step 2", "kill")
        ended, _, log = done.stdout.partition("\nThe training process has ended.\n")
        self.assertTrue(ended, done.stdout)
        self.assertFalse(written.exists())
        self.assertRegex(log, r"\.Ended: the debugger ended the training\n$")
        self.assertIn("in train\n", log)
        self.assertEqual(re.findall('File ".*/gradb/mindspore/.*', log), [])

    def test_history_of_a_watchpoint(self):
        said = self.styles("graph", "model", "watch 'max > 1e9' on net/fc2/bias", "step 3", "info history",
                           "info scalars")
        self.assertRegex(said, r"net/fc2/bias")
        self.assertRegex(said, r"(?m)^loss +\S+ +3\nlr +0\.05\d* +3\nepoch +1 +3\nbatch +3 +3$")


if __name__ == "__main__":
    harness.main()
