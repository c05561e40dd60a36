# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics and events of a PyTorch training: loss, learning rate, epoch, batch, scaler; catch; times."""
import re

import harness
import torches

# Its numbers are known in advance: the weight is 3, 2.4, 1.92, ...
KNOWN = """
import torch
from torch.utils.data import DataLoader
net = torch.nn.Linear(1, 1, bias=False)
with torch.no_grad():
    net.weight.fill_(3)
optimizer = torch.optim.SGD([{"params": net.parameters()}], lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
loader = DataLoader(torch.ones(4, 1), batch_size=2)
checks = DataLoader(torch.ones(6, 1), batch_size=1)
for epoch in range(4):
    for x in loader:
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
        schedule.step()
    for x in checks:
        with torch.no_grad():
            net(x)
"""

# Two micro-batches a step, and two groups with rates of their own.
GROUPS = """
import torch
first, second = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
with torch.no_grad():
    first.weight.fill_(2), second.weight.fill_(3)
optimizer = torch.optim.SGD([{"params": first.parameters(), "lr": 0.5}, {"params": second.parameters()}], lr=0.25)
for _ in range(3):
    optimizer.zero_grad(set_to_none=True)
    for _ in range(2):
        second(first(torch.ones(1, 1))).sum().backward()
    optimizer.step()
"""

CLOSURE = """
import torch
weight = torch.nn.Parameter(torch.tensor([4.0]))
optimizer = torch.optim.LBFGS([weight], lr=0.25, max_iter=3)
def closure():
    optimizer.zero_grad()
    loss = (weight ** 2).sum()
    loss.backward()
    return loss
for _ in range(3):
    optimizer.step(closure)
"""

SPOILT = """
import torch
net = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
for step in range(1, 41):
    x = torch.full((4, 1), 1000.0 if step == 20 else float("nan") if step == 30 else 1.0)
    optimizer.zero_grad()
    (net(x) - 3).pow(2).mean().backward()
    if step < 20:
        optimizer.step()
    else:
        optimizer.step(lambda: None)
"""


# Passes that are given a gradient: that of a loss is 1.
WEIGHTED = """
import torch
net = torch.nn.Linear(1, 1, bias=False)
with torch.no_grad():
    net.weight.fill_(2.0)
optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
for step in range(1, 5):
    optimizer.zero_grad()
    if step % 2 == 1:
        net(torch.ones(1, 1)).sum().backward(torch.tensor(1.0))
    if step > 1:
        net(torch.full((1, 1), 3.0)).sum().backward(torch.tensor(0.5))
    optimizer.step()
"""


# Logs inside the steps and after them: the sixth number comes after the last step.
LATE = """
import sys, torch
import gradb.torch
net = torch.nn.Linear(1, 1)
other = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
second = torch.optim.SGD(other.parameters(), lr=0.001)
for step, score in enumerate((1, 3, 2, 5, 5, 6), 1):
    optimizer.zero_grad()
    loss = net(torch.ones(4, 1)).mean()
    gradb.torch.log("inside", step)
    loss.backward()
    if sys.argv[1] == "two":
        other(torch.ones(4, 1)).mean().backward()
        second.step()
        gradb.torch.log("half", step)
    optimizer.step()
    gradb.torch.log("score", torch.tensor(float(score)))
    if sys.argv[1] == "hand":
        gradb.torch.step()
"""


class Events(torches.Folder):
    """What the cases share."""

    def said(self, program, *commands):
        """gradb's output after the stop before the first step."""
        done = self.gradb([self.python, *program], *commands)
        self.assertIn("Stopped before the first step.\n", done.stdout, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout.split("Stopped before the first step.\n", 1)[1]


@torches.both
class Numbers(Events):
    def test_loss_rate_epoch_batch(self):
        said = self.said([self.write("known.py", KNOWN)], *5 * ["step"])
        self.assertEqual(said, """\
Stopped at the end of step 1.
lr = 0.1, loss = 9, epoch = 1, batch = 1
Stopped at the end of step 2.
lr = 0.1, loss = 5.76, epoch = 1, batch = 2
Stopped at the end of step 3.
lr = 0.1, loss = 3.6864, epoch = 2, batch = 1
Stopped at the end of step 4.
lr = 0.05, loss = 2.3593, epoch = 2, batch = 2
Stopped at the end of step 5.
lr = 0.05, loss = 1.91103, epoch = 3, batch = 1
""")

    def test_numbers_belong_to_the_step_that_has_ended(self):
        path = self.write("late.py", LATE)
        said = self.said([path, "one"], "on step-end if improved(score) print score", "step 2",
                         "on step-end if score > 1.5 * prev(score) print prev(score)", "step", "info scalars", "continue")
        self.assertEqual(re.findall(r"(?m)^score = .*", said), ["score = %d (step %d)" % (score, step) for score, step in (
            (1, 1), (3, 2), (5, 4))])
        self.assertEqual(re.findall(r"(?m)^prev\(score\) = .*", said), ["prev(score) = 1 (step 3)",
                                                                       "prev(score) = 2 (step 5)"])
        self.assertRegex(said, r"end of step 3\.\ninside = 3, .*, score = 3 \(step 2\)\n")
        self.assertRegex(said, r"(?m)^inside +3 +3$")
        self.assertRegex(said, r"(?m)^score +3 +2$")

    def test_what_is_logged_before_the_last_part_of_a_step_belongs_to_it(self):
        path = self.write("late.py", LATE)
        said = self.said([path, "two"], "agent step-of SGD", "step 3", "info scalars")
        self.assertRegex(said, r"(?m)^half +3 +3$")
        said = self.said([path, "hand"], "step 2", "step 2", "info scalars")
        self.assertRegex(said, r"(?m)^score +2 +4$")  # the first step was ended by the optimizer, the second by hand
        self.assertIn("score = 2\n", said)

    def test_groups_and_micro_batches(self):
        said = self.said([self.write("groups.py", GROUPS)], "step", "step")
        self.assertEqual(said, """\
Stopped at the end of step 1.
lr = 0.5, lr_1 = 0.25, loss = 12, micro_batch = 2
Stopped at the end of step 2.
lr = 0.5, lr_1 = 0.25, loss = -4, micro_batch = 2
""")

    def test_a_pass_with_a_weight_is_not_of_a_loss(self):
        said = self.said([self.write("weighted.py", WEIGHTED)], "step", "step", "step", "step")
        self.assertEqual(re.findall(r"(?m)^lr = 0(.*)$", said), [
            ", loss = 2", "", ", loss = 2, micro_batch = 2", ", micro_batch = 1"])

    def test_a_closure_is_called_several_times_and_its_first_loss_counts(self):
        said = self.said([self.write("closure.py", CLOSURE)], "step")
        self.assertEqual(said, "Stopped at the end of step 1.\nlr = 0.25, loss = 16\n")


@torches.both
class Catch(Events):
    def test_the_rate_changes(self):
        said = self.said([self.write("known.py", KNOWN)], "catch lr", "continue", "continue", "info breakpoints")
        self.assertEqual(said, """\
Catchpoint 1: lr
Continuing.
Catchpoint 1: lr, step 4: lr=0.05 prev(lr)=0.1
Catchpoint 1 (lr), at the end of step 4.
lr = 0.05, loss = 2.3593, epoch = 2, batch = 2
Continuing.
Catchpoint 1: lr, step 7: lr=0.025 prev(lr)=0.05
Catchpoint 1 (lr), at the end of step 7.
lr = 0.025, loss = 1.25383, epoch = 4, batch = 1
Num  Type        Disp  Enb  Where
1    catchpoint  keep  y    lr
""")

    def test_the_loss_jumps_and_is_lost(self):
        said = self.said([self.write("spoilt.py", SPOILT)], "tcatch loss-spike if step > 12", "catch nan-loss",
                         "continue", "continue", "info breakpoints")
        self.assertRegex(said, r"\nTemporary catchpoint 1|Catchpoint 1")
        stops = re.findall(r"^(.*), at the end of (step \d+)\.$", said, re.M)
        self.assertEqual(stops, [("Temporary catchpoint 1 (loss-spike)", "step 20"), ("Catchpoint 2 (nan-loss)", "step 30")])
        self.assertTrue(said.endswith("Num  Type        Disp  Enb  Where\n2    catchpoint  keep  y    nan-loss\n"))

    def test_only_a_condition_may_follow(self):
        done = self.gradb([self.python, self.write("known.py", KNOWN)], "catch lr on weights")
        self.assertEqual(done.returncode, 1)
        self.assertIn('catch lr: expected "if EXPRESSION"', done.stderr)


@torches.both
class Scaler(Events):
    def setUp(self):
        super().setUp()
        if torches.release_of(self.python) < (2, 3):
            self.skipTest("this PyTorch's gradient scaler works on CUDA alone")

    def test_a_skipped_step_is_a_step(self):
        script = self.write("amp.py", (torches.SCRIPTS / "amp.py").read_text())
        said = self.said([script], "catch skip", "catch scale", "continue", "continue", "info log")
        said = re.sub(r"loss = [\d.]+", "loss = #", said)
        self.assertEqual(said, """\
Catchpoint 1: skip
Catchpoint 2: scale
Continuing.
Catchpoint 2: scale, step 3: loss_scale=512 prev(loss_scale)=1024
Catchpoint 1: skip, step 3: skipped=1
Catchpoints 2 and 1, at the end of step 3.
lr = 0.1, loss = inf, skipped = 1, loss_scale = 512
Continuing.
Catchpoint 2: scale, step 7: loss_scale=1024 prev(loss_scale)=512
Catchpoint 2 (scale), at the end of step 7.
lr = 0.1, loss = #, skipped = 0, loss_scale = 1024
skipped-step at step 3: SGD: Inf or NaN in the gradients
loss-scale at step 3: 1024 -> 512
loss-scale at step 7: 512 -> 1024
""")


@torches.both
class Timing(Events):
    def test_parts_of_a_step_and_operators(self):
        done = harness.run_gradb("-nx", "--batch", "--json", "--listen", "127.0.0.1:0", "-ex", "step", "-ex",
                                 "set timing on", "-ex", "step 5", "-ex", "info timing", "run", "--",
                                 self.python, self.write("known.py", KNOWN), env=torches.environment(),
                                 cwd=self.folder)
        record = harness.records(done, "timing")[0]
        self.assertEqual((record["step"], record["steps_timed"]), (6, 6))
        for times in (record["last"], record["median"], record["mean"]):
            self.assertEqual(list(times), ["data", "forward", "backward", "optimizer", "rest", "total"])
        for times in (record["last"], record["mean"]):
            parts = sum(value for name, value in times.items() if name != "total")
            self.assertAlmostEqual(parts, times["total"], places=6)
        names = {operator["node"] for operator in record["operators"]}
        self.assertLessEqual({"net/linear", "pow", "mean", "net/weight.grad"}, names)


if __name__ == "__main__":
    harness.main()
