# SPDX-License-Identifier: GPL-3.0-or-later
"""The compiled graphs of a MindSpore training, shown from their IR."""
import re

import harness
import minds
from terminal import NEXT_PANE, Terminal

# The operators of a network that are compiled, and those that a rehearsal shows.
PAIRS = {"Conv2D": "net/conv/Conv2D", "BatchNorm": "net/norm/BatchNorm", "ReLU": "net/relu/ReLU",
         "Flatten": "net/flatten/Flatten", "MatMul": "net/fc1/MatMul", "BiasAdd": "net/fc1/BiasAdd",
         "ReLU_1": "net/relu/ReLU_1", "MatMul_1": "net/fc2/MatMul", "BiasAdd_1": "net/fc2/BiasAdd",
         "SparseSoftmaxCrossEntropyWithLogits": "criterion/SparseSoftmaxCrossEntropyWithLogits"}
IR_NAME = "Default/network-WithLossCell/_backbone-Net/fc1-Dense/MatMul-op0"


def info(*names):
    return [f"info node {name}" for name in names]


def attributes(said):
    """Node -> its attributes, of the answers to `info node`."""
    found = {}
    for line in said.split("\n"):
        if re.match(r"\S+/\S+$|[A-Z]\w+$", line):
            found[line] = {}
        attribute = re.match("  attribute   (.*?) = (.*)", line)
        if attribute and found:
            found[list(found)[-1]][attribute.group(1)] = attribute.group(2)
    return found


@minds.needed
class Compiled(minds.Case):
    def styles(self, mode, style, *commands):
        return self.said([self.script("styles.py"), mode, style], *commands, "kill")

    def test_is_shown_when_the_first_step_has_ended(self):
        for mode, style, call in (("graph", "model", "TrainOneStepCell"), ("graph", "own", "forward"),
                                  ("graph", "jitted", "train_step"), ("pynative", "jitted", "train_step")):
            with self.subTest(mode=mode, style=style):
                said = self.styles(mode, style, "step", f"info nodes -a compiled/{call}")
                path = "net/conv/" if style == "model" else ""
                self.assertRegex(said, rf"(?m)^ +Conv2D +compiled +float32 \(4, 3, 6, 6\) +compiled/{call}/{path}Conv2D$")
                self.assertRegex(said, rf"compiled/{call}/backward/Grad_Conv2D/Conv2DBackpropFilter\n")

    def test_nothing_is_shown_in_pynative_mode(self):
        said = self.styles("pynative", "own", "step 2", "info graph", "info scopes")
        self.assertNotRegex(said, r"compiled[/\n]|\d compiled")

    def test_counterparts(self):
        for style, call in (("own", "forward"), ("jitted", "train_step")):
            with self.subTest(style=style):
                names = [f"compiled/{call}/{name}" for name in PAIRS]
                said = self.styles("graph", style, "step", *info(*names), "agent operators on", "step",
                                   *info(*names, *PAIRS.values()))
                before, after = said.split("operators  on\n")
                for name in names:
                    self.assertRegex(attributes(before)[name]["counterpart"], "^unknown until the operators are watched")
                known = attributes(after)
                for name, other in zip(names, PAIRS.values()):
                    self.assertEqual((known[name]["counterpart"], known[other]["counterpart"]), (other, name))

    def test_counterparts_where_the_first_step_is_watched(self):
        said = self.styles("graph", "cell", "tbreak net/fc1/MatMul", "continue", "step", *info(IR_NAME))
        node = attributes(said)["compiled/TrainOneStepCell/net/fc1/MatMul"]
        self.assertEqual((node["counterpart"], node["phase"], node["output"], node["compiled"], node["ir name"]),
                         ("net/fc1/MatMul", "forward", "float32 (4, 8)", "in step 1", IR_NAME))

    def test_updates_are_the_counterparts_of_the_optimizer_s_operators(self):
        update = "optimizer/Momentum/net/fc1/weight"
        names = ["compiled/train_step/ApplyMomentum" + number for number in ("", "_1", "_2", "_3", "_4", "_5", "_6")]
        said = self.styles("graph", "jitted", "step", *info(update, *names))
        known = attributes(said)
        name = known[update]["counterpart"]
        self.assertEqual((known[name]["counterpart"], known[name]["phase"]), (update, "optimizer"))
        self.assertIn("  input       net/fc1/weight (Parameter)\n", said.split(f"\n{name}\n")[1].split("attribute")[0])

    def test_no_counterpart_where_two_are_alike(self):
        """The critic is called twice in one function, the generator once."""
        said = self.styles("graph", "gan", "step", "agent operators on", "step",
                           *info("compiled/critic_loss/MatMul", "compiled/critic_loss/MatMul_2",
                                 "compiled/generator_loss/MatMul_2"))
        known = {name: found["counterpart"] for name, found in attributes(said).items()}
        self.assertEqual(known, {"compiled/critic_loss/MatMul": "none that is certain",
                                 "compiled/critic_loss/MatMul_2": "generator/0/MatMul_1",
                                 "compiled/generator_loss/MatMul_2": "net/0/MatMul"})

    def test_has_no_values(self):
        name = "compiled/TrainOneStepCell/net/fc1/MatMul"
        refused = (f"print {name}", f"print {IR_NAME}", f"stats {name}", f"break {name}", f"watch TO on {name}",
                   f"run-to {name}", f"why {name}")
        done = self.gradb([self.script("styles.py"), "graph", "cell"], "set on-error continue", "step",
                          "agent operators on", "step", *refused, "kill")
        why = f"error: {name} is inside compiled code and has no values; its counterpart: net/fc1/MatMul"
        self.assertEqual(done.stderr.splitlines(), [why] * len(refused), done.stdout)

    def test_is_passed_over(self):
        """By what selects nodes, and by what walks the graph."""
        said = self.styles("graph", "cell", "step", "watch TO on all", "break type:ReLU", "continue", "delete 2",
                           "step", "info nodes -a", "info types", *info("net/fc1/weight"), "search Conv2D")
        listed, searched = said.split("\nOrder ", 2)[1:]
        self.assertNotIn("compiled/", listed)
        self.assertIn("\nBreakpoint 2, step 2, forward, net/relu/ReLU (ReLU)\n", said)
        self.assertNotIn("could not be checked", said)
        self.assertRegex(said, r"(?m)^ +2 +ReLU$")
        names = re.findall(r"\S*Conv2D\S*$", searched, re.M)
        self.assertEqual(sorted(names, key=lambda name: name.startswith("compiled/")), names)
        self.assertTrue(names[-1].startswith("compiled/"), names)

    def test_a_graph_that_is_compiled_again(self):
        said = self.said([self.script("compiled_again.py")], "step", "info nodes -a compiled", "step 3",
                         "info nodes -a compiled", *info("compiled/train_step/MatMul", "compiled/train_step/ReLU"),
                         "kill")
        self.assertEqual(re.findall(r"^ +MatMul +compiled +(.*?) +compiled/train_step/MatMul$", said, re.M),
                         ["float32 (2, 4)", "float32 (3, 4)"])
        known = attributes(said)
        self.assertEqual(known["compiled/train_step/MatMul"]["compiled"], "in step 3")
        self.assertEqual(known["compiled/train_step/ReLU"]["compiled"], "not in the graph that was compiled last")

    def test_a_branch_hides_what_is_inside(self):
        said = self.said([self.script("branch.py")], "step", *info("compiled/train_step/MatMul", "compiled/train_step/Call"),
                         "info nodes -a compiled", "kill")
        known = attributes(said)
        self.assertEqual((known["compiled/train_step/MatMul"]["phase"], known["compiled/train_step/Call"]["phase"]),
                         ("forward", "unknown"))
        self.assertRegex(said, r"(?m)^ +SGD +compiled +float32 \(4, 5\) +compiled/train_step/SGD")

    def test_pane(self):
        """On the smallest usual screen: the compiled graph is a row below the network, and opens like any other."""
        with Terminal(run=self.words([self.script("styles.py"), "graph", "cell"]),
                      env={"OMP_NUM_THREADS": "1", "GLOG_v": "3"}) as t:
            t.expect("topped before the first step")
            t.command("step", r"^   ▸ compiled \(30\)")
            t.send(NEXT_PANE + "/BatchNorm\r")
            t.expect(r"^ +▾ TrainOneStepCell \(30\)")
            t.expect(r"^ +BatchNorm +│")
            t.expect(r"│type BatchNorm, compiled")
            t.expect(r"│output=float32 \(4, 3, 6, 6\)")
            t.send("p")
            t.expect(r"is inside compiled code and")

    def test_weights_are_those_of_a_bare_run(self):
        program = [self.script("styles.py"), "graph", "jitted"]
        done = self.gradb(program, "step", "agent operators on", "step", "continue")
        self.assertEqual(minds.digests(done.log), minds.digests(self.bare(*program)), done.stderr)


if __name__ == "__main__":
    harness.main()
