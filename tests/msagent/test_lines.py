# SPDX-License-Identifier: GPL-3.0-or-later
"""Stops at lines of a MindSpore script, before the first step and later, in both modes."""
import unittest

import harness
import minds

SCRIPT = """import sys
import mindspore as ms
from mindspore import nn, ops
import numpy as np

ms.set_context(mode=ms.GRAPH_MODE if sys.argv[1] == "graph" else ms.PYNATIVE_MODE)
ms.set_seed(0)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(4, 8)
        self.fc2 = nn.Dense(8, 1)

    def construct(self, x):
        h = ops.relu(self.fc1(x))
        return self.fc2(h)


def note(step, loss):
    text = 'step %d: loss %.9g' % (step, loss)
    print(text, file=out, flush=True)


def train(steps):
    net = Net()
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    cell.set_train()
    rng = np.random.RandomState(0)
    for step in range(steps):
        x = ms.Tensor(rng.randn(16, 4).astype(np.float32))
        loss = cell(x, x.sum(1, keepdims=True))
        note(step, float(loss.asnumpy()))


out = open(sys.argv[2], "w")
train(6)
"""


@minds.needed
class Lines(minds.Case):
    def stops(self, mode, *commands):
        """gradb's output, after the training has printed what it prints without gradb."""
        (self.folder / "lines.py").write_text(SCRIPT, encoding="utf-8")
        self.bare("lines.py", mode, "alone")
        args = ("set start-timeout 0", "set on-error continue", "break lines.py:12", "break note",
                "run -- %s lines.py %s out" % (minds.PYTHON, mode), "continue", "backtrace", "finish", "continue",
                "info locals", "finish", *commands, "delete", "until note", "tbreak 34", "continue", "step", "continue")
        done = harness.run_gradb("-nx", "--batch", "--listen", "127.0.0.1:0", *harness.typed(*args),
                                 env=self.environment(), cwd=self.folder, timeout=4 * harness.DEADLINE)
        said = done.stdout.replace(str(self.folder) + "/", "")
        self.assertEqual((done.returncode, done.stderr), (0, ""), said)
        self.assertEqual((self.folder / "out").read_text(), (self.folder / "alone").read_text())
        for text in ("Breakpoint 1, before the first step, in Net.__init__\nlines.py:12\t        super().__init__()\n",
                     "#1  lines.py:27 in train\n", "#2  lines.py:39 in <module>\n",
                     "Run till exit from #0  lines.py:12 in Net.__init__\nbefore the first step, in train\nlines.py:27\t",
                     "Breakpoint 2, after step 1, in note\nlines.py:22\t",
                     "Variables in note (lines.py:22), step 1:\n",
                     "Run till exit from #0  lines.py:22 in note\nafter step 1, in train\nlines.py:35\t",
                     "\nafter step 2, in note\nlines.py:22\t",
                     "Temporary breakpoint %d, after step 2, in train\nlines.py:34\t" % (3 if mode == "graph" else 4),
                     "Stopped at the end of step 3.\n", "The training ended.\n"):
            self.assertIn(text, said)
        return said

    def test_graph_mode(self):
        self.stops("graph")

    def test_pynative_mode(self):
        said = self.stops("pynative", "break lines.py:Net.construct", "continue", "info line")
        for text in ("Breakpoint 3, step 2 (forward), in Net.construct\nlines.py:17\t        h = ops.relu(self.fc1(x))\n",
                     "Line 17 of lines.py is in Net.construct\n", "net/fc1/MatMul\n"):
            self.assertIn(text, said)


if __name__ == "__main__":
    harness.main()
