# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of MindSpore trainings: against the classes of mindspore.train, and against what Model.eval returns."""
import re
import subprocess

import harness
import minds

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

    def test_a_loss_cell_of_a_loop(self):
        path = self.write(FUNCTION.replace("LOSS", "nn.CrossEntropyLoss()(out, y)"))
        done = self.gradb([path], "metric accuracy by step", "step", "step", "step", "continue")
        wanted = re.findall(r"(?m)^found (\S+)$", done.log)
        self.assertEqual([self.numbers(done.stdout, step)["accuracy"] for step in (1, 2, 3)], wanted[:3])

    def test_a_loss_that_is_a_function(self):
        path = self.write(FUNCTION.replace("LOSS", "ops.cross_entropy(out, y)"))
        done = self.gradb([path], "metric accuracy by step", "step", "info nodes", "continue")
        self.assertIn("step 1 called no loss cell in Python: only Model.eval is counted; name nodes", done.stdout)
        done = self.gradb([path], "step", "metric own = accuracy of net/BiasAdd against input/y by step", "step",
                          "step", "continue")
        wanted = re.findall(r"(?m)^found (\S+)$", done.log)
        self.assertEqual([self.numbers(done.stdout, step)["own"] for step in (2, 3)], wanted[1:3], done.stdout)


if __name__ == "__main__":
    harness.main()
