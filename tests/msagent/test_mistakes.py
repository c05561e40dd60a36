# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes that people make in MindSpore scripts: gradb finds node, line and step, and `why` names the cause."""
import re

import harness
import minds

HERE = harness.SOURCE / "tests" / "msagent" / "mistakes"
MODES = ((), ("graph",))


@minds.needed
class Mistakes(minds.Case):
    def answers(self, script, *arguments):
        """The output of the commands without line breaks, in both modes."""
        *program, commands = arguments
        for mode in MODES:
            with self.subTest(mode=mode):
                done = self.gradb([str(HERE / script), *program, *mode], *commands, "kill")
                self.assertIn(done.returncode, (0, 4), done.stdout + done.stderr + done.log)  # 4: a hit ended it
                yield " ".join(done.stdout.split())

    def check(self, script, *arguments):
        """Each of the texts is in the output, in both modes."""
        *given, texts = arguments
        for out in self.answers(script, *given):
            for text in texts:
                self.assertIn(text, out)

    def test_logarithm_of_zero(self):
        self.check("mlp.py", "log", ["agent operators on", "watch TO on all", "continue", "why"],
                   ["Watchpoint 1, step 1, forward, loss_fn/Log (Log)", "return -ops.log(chosen.sum(-1)).mean() # of 0",
                    "Log (Log) takes the logarithm of 0: 2 of 8 elements of loss_fn/SumExt are 0"])

    def test_diagnose(self):
        """It finds the logarithm of 0 by itself, and nothing where there is none."""
        for mode in MODES:
            with self.subTest(mode=mode):
                done = self.gradb([str(HERE / "mlp.py"), "log", *mode], "diagnose --steps 3", "kill")
                out = " ".join(done.stdout.split())
                self.assertEqual((done.returncode, done.stderr), (4, ""), out)
                self.assertIn("1. fault: loss_fn/Log (Log) takes the logarithm of 0: 2 of 8 elements of loss_fn/SumExt are 0", out)
                done = self.gradb([str(HERE / "mlp.py"), "none", *mode], "diagnose --steps 3", "kill")
                self.assertIn("Nothing found. Examined 3 steps for outputs that are not finite, weights that", done.stdout)

    def test_diagnose_what_why_knows(self):
        for mistake, rule, said in (("stopped", "detached", "net/StopGradient (StopGradient) cuts it off"),
                                    ("softmax", "normalised-twice", "Softmax is applied twice"),
                                    ("untrained", "frozen", "net/fc1/weight is frozen"),
                                    ("half", "fp16-range", "exceeds the range of float16")):
            for mode in MODES:
                with self.subTest(mistake=mistake, mode=mode):
                    done = self.gradb([str(HERE / "mlp.py"), mistake, *mode], "diagnose")
                    out = " ".join(done.log.split())
                    self.assertIn(said, out)
                    self.assertIn("rule " + rule, out)

    def test_diagnose_says_nothing_of_what_is_meant(self):
        """A mask of infinities, and overflows that a scaler is there for."""
        scripts = HERE.parent / "scripts"
        for mode in ("pynative", "graph"):
            with self.subTest(mode=mode):
                done = self.gradb([str(scripts / "masks.py"), mode], "diagnose")
                self.assertIn("Nothing found. Examined 4 steps", done.log)
                done = self.gradb([str(scripts / "scaling.py"), mode, "own"], "diagnose")
                out = " ".join(done.log.split())
                self.assertIn("1. note: backward/Cast", out)
                self.assertIn("DynamicLossScaler multiplies this pass by its scale.", out)
                self.assertNotIn("2. ", out)

    def test_no_gradient_through_a_layer(self):
        said = ("No gradient reaches net/fc1/weight: net/StopGradient (StopGradient) cuts it off from the loss. The "
                "backward pass ends at net/fc2/MatMul (MatMul), which reads it.")
        self.check("mlp.py", "stopped", ["step 1", "watch TZ on gradients", "continue", "why net/fc1/weight.grad",
                                         "why loss"],
                   ["net/fc1/weight.grad:0 zero_percentage_ge=100 (100) net/fc1/bias.grad:0", said,
                    "mlp.py:28 in construct x = ops.stop_gradient(x)",
                    said + " Of the 6 parameters that Momentum holds, 2 have no gradient: net/fc1/weight and"])

    def test_through_an_array(self):
        """Compiled code has none."""
        done = self.gradb([str(HERE / "mlp.py"), "array"], "step 1", "watch TZ on gradients", "continue",
                          "why net/fc1/weight.grad", "kill")
        self.assertIn("No gradient reaches net/fc1/weight: the values of net/ReLU (ReLU) leave the graph through asnumpy() "
                      "at mlp.py:30, and no gradient comes back", " ".join(done.stdout.split()))

    def test_a_gradient_of_the_first_step(self):
        """Before the optimizer has run, it is known that there is none yet."""
        for mode in MODES:
            with self.subTest(mode=mode):
                done = self.gradb([str(HERE / "mlp.py"), "none", *mode], "set on-error continue", "agent operators on",
                                  "next 3", "why net/fc1/weight.grad", "step", "why net/fc1/weight.grad", "kill")
                self.assertEqual(done.stderr, "error: the optimizer has not been given a gradient of this step yet\n")
                self.assertIn("net/fc1/weight.grad (Gradient)  min", done.stdout)

    def test_a_gradient_inside_compiled_code_is_not_missing(self):
        for out in self.answers("mlp.py", "stopped", ["trace GM on gradients", "step", "step", "info hits"]):
            self.assertNotIn("age_ge=1 (1)", out)

    def test_a_gradient_that_compiled_code_made(self):
        """That nothing has computed it is not said before somebody has looked."""
        done = self.gradb([str(HERE / "mlp.py"), "stopped", "graph", "functional"], "step 2", "why net/fc1/weight.grad",
                          "agent operators on", "step", "why net/fc1/weight.grad", "kill")
        out = " ".join(done.stdout.split())
        self.assertIn("BAD net/fc1/weight.grad (Gradient) all 512 zero net/fc1/weight.grad is all zero (all 512 zero). The "
                      "operators that computed it were not seen, so where it began is unknown. To see them: `agent "
                      "operators on`, `step`, then `why` on it. operators on", out)
        self.assertIn("No gradient reaches net/fc1/weight: net/StopGradient (StopGradient) cuts it off", out)

    def test_watchpoints_at_the_end_of_a_compiled_step(self):
        """What they cover is inside; the gradients of a functional step are not."""
        for selector, least, looks in (("activations", 2, True), ("all", 40, True), ("net/", 20, True),
                                       ("gradients", 6, False), ("net/fc1/weight", 1, False)):
            with self.subTest(selector=selector):
                done = self.gradb([str(HERE / "mlp.py"), "none", "graph", "functional"], "step 2",
                                  f"watch -step TO on {selector}", "step 2", "info watchpoints", "kill")
                found = re.search(r"^1 +watch +y +step +(\d+) ", done.stdout, re.M)
                self.assertTrue(found, done.stdout)
                self.assertGreaterEqual(int(found.group(1)), least)
                self.assertEqual("step 3 is compiled: its operators were watched" in done.stdout, looks)

    def test_rate_too_high(self):
        self.check("mlp.py", "rate", ["step 1", "watch WCL on net/fc1/bias", "continue", "why"],
                   ["net/fc1/bias:0 abs_mean_update_ratio_gt=0.1 (4.6", "at the end of step 2",
                    "The learning rate is 10. The last update changed net/fc1/bias by 460 % of its size."])

    def test_where_the_high_rate_ends(self):
        self.check("mlp.py", "rate", ["agent operators on", "watch TO on all", "continue", "why"],
                   ["step 4, forward, loss_fn/SparseSoftmaxCrossEntropyWithLogits",
                    "takes the logarithm of a probability that float32 rounds to 0: the scores net/fc3/BiasAdd range from "
                    "-97.3"])

    def test_two_optimizers(self):
        """Each weight has the rate of its own optimizer, and each call of a network its own line."""
        for out in self.answers("two.py", ["watch WCL abs_mean_update_ratio_gt=0.01 on maker/2/bias", "step 2", "why",
                                           "delete", "next", "bt", "run-to maker/0/MatMul", "bt"]):
            self.assertRegex(out, r"The learning rate is 0\.02\. The last update changed maker/2/bias by [\d.]+ %")
            at = [out.index(f"in {name} fake = maker(noise) # for the {who}")
                  for name, who in (("maker_loss", "maker"), ("judge_loss", "judge"))]
            self.assertEqual(at, sorted(at))

    def test_the_loss_of_a_compiled_step(self):
        done = self.gradb([str(HERE / "mlp.py"), "none", "graph"], "set on-error continue", "step 2", "why loss", "agent operators on", "step",
                          "why loss", "kill")
        self.assertRegex(done.stderr, r"^error: the operators that computed the loss \([\d.]+\) were not seen: `agent "
                                      r"operators on`, `step`, then `why loss`\n$")

    def test_layers_that_nobody_trains(self):
        self.check("mlp.py", "untrained", ["step 1", "watch WNC on weights", "continue", "why net/fc1/weight",
                                           "why net/fc2/weight"],
                   ["net/fc1/weight:0 (frozen when first seen) net/fc2/weight:0 net/fc2/bias:0",
                    "net/fc1/weight is frozen: its requires_grad is False",
                    "Nothing updates net/fc2/weight: no optimizer holds it."])

    def test_beyond_float16(self):
        self.check("mlp.py", "half", ["agent operators on", "watch TO on all", "continue", "why"],
                   ["Watchpoint 1, step 1, forward, net/Mul (Mul)", "x = ops.cast(half * half, ms.float32)",
                    "net/Mul (Mul) exceeds the range of float16: its maximum is 65504, and with values up to 607.5 "
                    "(net/Cast) the result can reach 369"])

    def test_softmax_twice(self):
        self.check("mlp.py", "softmax", ["agent operators on", "step 2", "why loss"],
                   ["Softmax is applied twice: loss_fn/SparseSoftmaxCrossEntropyWithLogits", "net/softmax/Softmax (Softmax), already "
                    "consists of probabilities.", "x = self.softmax(x)"])

    def test_exploding_recurrence(self):
        self.check("recurrent.py", ["agent operators on", "watch 'norm > 1e8' on gradients", "continue", "why",
                                    "why loss"],
                   ["On its way back, the gradient grows from one run of net/keep/MatMul to the next: over 2",
                    "by a factor of 1.5 each", "Each run multiplies by net/keep/weight, which lengthens its input",
                    "h = self.keep(h)"])


if __name__ == "__main__":
    harness.main()
