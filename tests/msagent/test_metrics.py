# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of MindSpore trainings: against the classes of mindspore.train, and against what Model.eval returns."""
import json
import re
import subprocess

import harness
import minds
import numpy as np
import test_ranks

# Its loss is a function, which is not seen; in PyNative mode the operators of its steps are.
FUNCTION = """
import mindspore as ms, numpy as np
from mindspore import Tensor, nn, ops
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(1)
net = nn.Dense(4, 3)
optimizer = nn.SGD(net.trainable_params(), 3.0)
x, y = Tensor(np.random.RandomState(1).randn(32, 4).astype("float32")), Tensor((np.arange(32) % 3).astype("int32"))
def forward(x, y):
    out = net(x)
    return LOSS, out
grad = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
for step in range(5):
    (loss, out), grads = grad(x, y)
    optimizer(grads)
    print("found %.6g" % (out.asnumpy().argmax(1) == y.asnumpy()).mean(), flush=True)
"""


# What it says of each step: the norm of all gradients, of those of the first weight, and the ratio of its update.
NORMS = """
import sys, numpy as np, mindspore as ms
from mindspore import nn, Tensor
ms.set_seed(3)
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 2)
    def construct(self, x):
        return self.fc2(self.act(self.fc1(x)))
net, loss_fn = Net(), nn.MSELoss()
optimizer = nn.Adam(net.trainable_params(), learning_rate=0.01)
def forward(x, y):
    return loss_fn(net(x), y)
grad = ms.value_and_grad(forward, None, optimizer.parameters)
def train(x, y):
    loss, grads = grad(x, y)
    optimizer(grads)
    return loss, grads
if sys.argv[1] == "jit":
    train = ms.jit(train)
random = np.random.default_rng(0)
def norm(values):
    return np.linalg.norm(values.ravel().astype("float64"))
for step in range(1, 8):
    x, y = (Tensor(random.normal(size=(16, size)).astype("float32")) for size in (8, 2))
    before = net.fc1.weight.asnumpy().copy()
    _, grads = train(x, y)
    grads = [found.asnumpy() for found in grads]
    print("own %d %.6g %.6g %.6g" % (step, np.sqrt(sum(norm(found) ** 2 for found in grads)), norm(grads[0]),
                                     norm(net.fc1.weight.asnumpy() - before) / norm(before)), flush=True)
"""


@minds.needed
class Metrics(minds.Case):
    def write(self, text):
        path = self.folder / "own.py"
        path.write_text(text, encoding="utf-8")
        return str(path)

    def numbers(self, text, step):
        return dict(re.findall(r"(\w+) = ([-\w.+]+)", text.split("end of step %d.\n" % step)[1].split("\n", 1)[0]))

    def test_the_classes_of_mindspore(self):
        tool = harness.BUILD / "tests/base/metric_tool"
        done = subprocess.run([minds.PYTHON, self.script("classes.py"), str(harness.SOURCE / "tests/base"), str(tool)],
                              env=self.environment(GRADB_DISABLE="1"), cwd=self.folder, capture_output=True, text=True,
                              timeout=4 * harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        self.assertGreater(int(re.search(r"equal: (\d+)", done.stdout).group(1)), 50)

    def norms(self, mode):
        """(what gradb printed and its errors, step -> [total, first, ratio])"""
        done = self.gradb([self.write(NORMS), mode], "set on-error continue", "print grad_norm", "step 2",
                          "print grad_norm", "print grad_norm(fc1.weight)", "print update_ratio(fc1.weight)", "step 3",
                          "print grad_norm", "print grad_norm(fc1.weight)", "print update_ratio(fc1.weight)",
                          "info history update_ratio(fc1.weight) > ratio.csv", "continue")
        own = {int(step): [float(number) for number in numbers] for step, *numbers in
               re.findall(r"own (\d+) (\S+) (\S+) (\S+)", done.log)}
        self.assertEqual(list(own), list(range(1, 8)))
        rows = (self.folder / "ratio.csv").read_text(encoding="utf-8").splitlines()[1:]
        self.assertEqual([row.split(",")[0] for row in rows], ["3", "4", "5"])
        for step, value in (row.split(",") for row in rows):
            self.near(float(value), own[int(step)][2])
        return done, own

    def near(self, value, wanted):
        self.assertAlmostEqual(value, wanted, delta=1e-4 * wanted)

    def test_norms(self):
        done, own = self.norms("python")
        found = re.findall(r"(?m)^(\S+) = (\S+) \(step (\d)\)$", done.stdout)
        self.assertEqual([(name, step) for name, _, step in found], [
            ("grad_norm", "2"), ("grad_norm", "5"), ("grad_norm(fc1.weight)", "5"), ("update_ratio(fc1.weight)", "5")],
            done.stdout + done.stderr)
        for (_, value, _), wanted in zip(found, (own[2][0], own[5][0], own[5][1], own[5][2])):
            self.near(float(value), wanted)

    def test_norms_of_compiled_steps(self):
        """Their gradients are inside; what they made of a parameter is not."""
        done, own = self.norms("jit")
        found = re.findall(r"(?m)^(\S+) = (\S+) \(step (\d)\)$", done.stdout)
        self.assertEqual([(name, step) for name, _, step in found], [("update_ratio(fc1.weight)", "5")], done.stdout)
        self.near(float(found[0][1]), own[5][2])
        self.assertIn("grad_norm is unknown: the step ran compiled, its gradients are inside", done.stderr)

    def test_what_model_eval_returns(self):
        for mode, on_device in (("pynative", "0"), ("graph", "0"), ("pynative", "1")):
            path = self.script("evaluated.py")
            done = self.gradb([path, mode], "metric accuracy", "metric loss", "metric precision average=none",
                              "metric recall average=none", "metric f1 average=none", "metric top1 = topk k=1",
                              "metric top2 = topk k=2", "step 4", "step 3", "continue", GRADB_METRICS_ON_DEVICE=on_device)
            self.assertNotIn("metrics copy", done.stdout)
            wanted = re.findall(r"(?m)^(eval_\w+) (\S+)$", done.log)
            half = len(wanted) // 2
            self.assertEqual(half, 16, done.stdout + done.log)
            for step, expected in ((4, dict(wanted[:half])), (7, dict(wanted[half:]))):
                found = self.numbers(done.stdout, step)
                self.assertEqual({name: found.get(name) for name in expected}, expected, (mode, step))
            self.assertEqual(re.findall("(?m)^digest.*", done.log), re.findall("(?m)^digest.*", self.bare(path, mode)))
            if mode == "pynative":
                self.assertIn("accuracy", self.numbers(done.stdout, 4))
            else:
                self.assertIn("step 1 called no loss cell in Python", done.stdout)

    def test_named_nodes_are_counted_in_evaluations(self):
        for mode in ("pynative", "graph"):
            done = self.gradb([self.script("evaluated.py"), mode], "tbreak type:BiasAdd", "continue", "step",
                              "metric accuracy of net/2/BiasAdd against SparseSoftmaxCrossEntropyWithLogits.input1",
                              "step 3", "step 3", "info nodes eval/*", "continue")
            wanted = re.findall(r"(?m)^eval_accuracy (\S+)$", done.log)
            for step, expected in zip((4, 7), wanted):
                self.assertEqual(self.numbers(done.stdout, step)["eval_accuracy"], expected, (mode, step))
                self.assertIn("eval_accuracy = %s (step %d)" % (expected, step - 1), done.stdout)
            self.assertNotIn("BiasAdd_1", done.stdout)  # each batch runs the same nodes

    def test_a_loss_cell_of_a_loop(self):
        path = self.write(FUNCTION.replace("LOSS", "nn.CrossEntropyLoss()(out, y)"))
        done = self.gradb([path], "metric accuracy by step", "step", "step", "step", "continue")
        wanted = re.findall(r"(?m)^found (\S+)$", done.log)
        self.assertEqual([self.numbers(done.stdout, step)["accuracy"] for step in (1, 2, 3)], wanted[:3])

    def test_numbers_between_steps_belong_to_the_one_that_has_ended(self):
        text = FUNCTION.replace("LOSS", "ops.cross_entropy(out, y)").replace("ms, numpy as np\n", "ms, numpy as np\n"
                                                                             "import gradb.mindspore\n")
        path = self.write(text.replace("    optimizer(grads)\n", "    gradb.mindspore.log('inside', step + 1)\n"
                                       "    optimizer(grads)\n    gradb.mindspore.log('after', step + 1)\n"))
        done = self.gradb([path], "step", "on step-end if improved(after) print after", "step 3", "info scalars", "continue")
        self.assertEqual(re.findall(r"(?m)^after = (.*)$", done.stdout), ["%d (step %d)" % (step, step) for step in (
            1, 2, 3, 4)])
        self.assertRegex(done.stdout, r"(?m)^inside +4 +4$")
        self.assertRegex(done.stdout, r"(?m)^after +3 +3$")

    def test_a_loss_that_is_a_function(self):
        path = self.write(FUNCTION.replace("LOSS", "ops.cross_entropy(out, y)"))
        done = self.gradb([path], "metric accuracy by step", "step", "info nodes", "continue")
        self.assertIn("step 1 called no loss cell in Python: only Model.eval is counted; name nodes", done.stdout)
        done = self.gradb([path], "step", "metric own = accuracy of net/BiasAdd against input/y by step", "step",
                          "step", "continue")
        wanted = re.findall(r"(?m)^found (\S+)$", done.log)
        self.assertEqual([self.numbers(done.stdout, step)["own"] for step in (2, 3)], wanted[1:3], done.stdout)


@minds.needed
class Ranks(test_ranks.Ranks):
    """Over two ranks under msrun."""

    def samples(self, steps):
        """Predicted and true classes of both ranks in those steps."""
        ranks = [json.loads((self.folder / f"seen{rank}").read_text()) for rank in (0, 1)]
        parts = [(np.array(rank[step][0]).argmax(1), rank[step][1]) for rank in ranks for step in steps]
        return (np.concatenate([part[side] for part in parts]) for side in (0, 1))

    def f1(self, steps):
        predicted, labels = self.samples(steps)
        numbers = [2 * ((predicted == c) & (labels == c)).sum() / ((predicted == c).sum() + (labels == c).sum())
                   for c in set(predicted) | set(labels)]
        return sum(numbers) / len(numbers)

    def accuracy(self, step):
        predicted, labels = self.samples([step])
        return (predicted == labels).mean()

    def test_all_samples_count(self):
        """In the history, at a stop and in a condition."""
        done = self.gradb([self.script("metric_ranks.py"), self.folder / "seen"], "metric accuracy by step ranks",
                          "metric f1 average=macro ranks", "step 3", "info metrics",
                          "catch step-end if f1 < 2 && accuracy < 0.6", "continue", "delete 1", "step 2",
                          "info history accuracy -a", "info history f1 -a", "continue")
        for name, of in (("accuracy", self.accuracy), ("f1", lambda step: self.f1(range(step + 1)))):
            rows = re.findall(r"(?m)^ +(\d+) +([\d.]+)$", done.stdout.split(name + ": 6 steps recorded")[1])[:6]
            self.assertEqual([int(step) for step, _ in rows], list(range(1, 7)), done.stdout)
            for step, value in rows:
                self.assertAlmostEqual(float(value), of(int(step) - 1), 5, done.stdout)
        self.assertIn("accuracy: over 2 of 2 ranks\nf1: over 2 of 2 ranks\n", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^accuracy +\S+ +13 +2 +3$")
        wanted = next(step for step in range(4, 7) if self.accuracy(step - 1) < 0.6)
        self.assertIn("Catchpoint 1 (step-end), at the end of step %d." % wanted, done.stdout)


if __name__ == "__main__":
    harness.main()
