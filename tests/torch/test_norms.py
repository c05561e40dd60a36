# SPDX-License-Identifier: GPL-3.0-or-later
"""grad_norm, update_ratio and histograms of PyTorch trainings: what they should be, the script computes itself."""
import json
import re
import subprocess

import harness
import torches

SCRIPT = """
import sys, torch
from torch import nn
torch.manual_seed(5)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(1, 9):
    x = torch.randn(16, 6)
    loss = net(x).pow(2).mean()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.2 if step % 2 else 100.0)
    total = float(nn.utils.clip_grad_norm_(net.parameters(), 1e9))
    first = float(net[0].weight.grad.norm())
    before = net[0].weight.detach().clone()
    optimizer.step()
    ratio = float((net[0].weight.detach() - before).norm() / before.norm())
    print("own %d %.5g %.5g %.5g" % (step, total, first, ratio), flush=True)
    optimizer.zero_grad()
print("digest", float(sum(p.double().sum() for p in net.parameters())).hex(), float(torch.rand(1)).hex())
"""

# A parameter is NaN and Inf in part, then as a whole, then constant; the histogram of each step as NumPy has it.
HISTOGRAMS = """
import json, torch, numpy
from torch import nn
torch.manual_seed(5)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.bias = nn.Linear(6, 2), nn.Parameter(torch.randn(500))
    def forward(self, x):
        return self.fc(x) + 0 * self.bias[0].detach().nan_to_num()
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(1, 9):
    net(torch.randn(16, 6)).pow(2).mean().backward()
    net.bias.grad = torch.randn(500) if step < 6 else torch.full((500,), float("nan")) if step == 6 else torch.zeros(500)
    optimizer.step()
    found = net.bias.detach().numpy().astype("float64")
    finite = found[numpy.isfinite(found)]
    counts = numpy.histogram(finite, 40, (finite.min(), finite.max()))[0].tolist() if len(finite) else []
    if len(finite) and finite.min() == finite.max():
        counts = 39 * [0] + [len(finite)]
    print("own", json.dumps([step, counts, int(numpy.isnan(found).sum()), int(numpy.isinf(found).sum())]), flush=True)
    optimizer.zero_grad()
    with torch.no_grad():
        if step == 4:
            net.bias[:3] = torch.tensor([float("nan"), float("-inf"), float("inf")])
        if step == 6:
            net.bias.fill_(0.5)
print("digest", float(sum(p.double().sum() for p in net.parameters())).hex(), float(torch.rand(1)).hex())
"""


@torches.both
class Norms(torches.Folder):
    def own(self, text):
        """step -> [total, of the first weight's gradient, ratio of its update], as the script computed them."""
        return {int(step): [float(number) for number in (total, first, ratio)]
                for step, total, first, ratio in re.findall(r"own (\d+) (\S+) (\S+) (\S+)", text)}

    def near(self, text, pattern, wanted):
        found = re.search(pattern + r" = (\S+) \(step", text)
        self.assertTrue(found, pattern + ": " + text)
        self.assertAlmostEqual(float(found.group(1)), wanted, delta=1e-4 * abs(wanted))

    def test_each_step_and_the_present_one(self):
        """At a stop from the gradients that are there, afterwards in each step, after clipping; the training is the
        same to the bit."""
        script = self.write("train.py", SCRIPT)
        alone = subprocess.run([*torches.warm(self.python), script], capture_output=True, text=True, check=True,
                               env=torches.environment(GRADB_DISABLE="1"), timeout=2 * harness.DEADLINE)
        done = self.gradb(
            [self.python, script], "set on-error continue", "print grad_norm", "step 3", "print grad_norm",
            "print grad_norm(net/0/weight)", "print update_ratio(net/0/weight)", "step 2", "print grad_norm", "print update_ratio(net/0/weight)",
            "catch step-end if grad_norm(net/2/bias) > 1e-9", "plot update_ratio(net/0/weight) > ratio.csv", "continue",
            "delete", "watch grad_norm > 1e-9", "continue", "info history grad_norm > norm.csv", "delete",
            "print grad_norm(net/1/tanh)", "continue", "info log -a")
        own = self.own(alone.stdout)
        self.assertIn("grad_norm is recorded from step 1 on: the gradients of the present step are not there",
                      done.stderr)
        parts = done.stdout.split("Stopped at the end of step ")
        self.near(parts[1], r"grad_norm", own[3][0])
        self.near(parts[1], r"grad_norm\(net/0/weight\)", own[3][1])
        self.assertIn("update_ratio(net/0/weight) is recorded from step 4 on", done.stderr)
        self.near(parts[2], r"(?m)^grad_norm", own[5][0])
        self.near(parts[2], r"update_ratio\(net/0/weight\)", own[5][2])
        self.assertRegex(done.stdout, r"Catchpoint 1 \(step-end\), at the end of step 6")
        self.assertRegex(done.stdout, r"Watchpoint 2: grad_norm > 1e-9, step 7")
        self.assertIn("'net/1/tanh' is not a parameter", done.stderr)
        rows = [line.split(",") for line in (self.folder / "norm.csv").read_text().splitlines()]
        for step, value in rows[1:]:
            self.assertAlmostEqual(float(value), own[int(step)][0], delta=1e-4 * own[int(step)][0])
        self.assertEqual([row[0] for row in rows[1:]], ["1", "2", "3", "4", "5", "6", "7"])
        self.assertEqual((self.folder / "ratio.csv").read_text().splitlines()[0], "step,update_ratio(net/0/weight)")
        digest = re.search(r"digest .*", alone.stdout).group()
        self.assertIn(digest, done.stdout)

    def test_histograms(self):
        """Of each step, with what is not finite beside them; the training is the same to the bit."""
        script = self.write("train.py", HISTOGRAMS)
        alone = subprocess.run([*torches.warm(self.python), script], capture_output=True, text=True, check=True,
                               env=torches.environment(GRADB_DISABLE="1"), timeout=2 * harness.DEADLINE)
        done = self.gradb([self.python, script], "set history-file here.gdhist", "trace histogram on net/bias", "continue",
                          "plot --histogram net/bias --rows 8 --at 5",
                          "info log -a")
        shown = done.stdout.split("The training ended.\n")[1]
        self.assertIn(re.search(r"digest .*", alone.stdout).group(), done.stdout)
        self.assertRegex(shown, r"^net/bias:0 \S+ to \S+, median ~\S+ at step 5, 1 NaN, 2 Inf")
        opened = harness.run_gradb("-nx", "--batch", "--json",
                                   *harness.typed("open here.gdhist", "plot --histogram net/bias"), cwd=self.folder)
        record = next(json.loads(line) for line in opened.stdout.splitlines() if '"type":"plot"' in line)
        found = [[one["step"], one["counts"], one["nan"], one["inf"]] for one in record["series"][0]["histograms"]]
        self.assertEqual(found, [json.loads(line) for line in re.findall(r"(?m)^own (.*)$", alone.stdout)])
        self.assertEqual([step for step, *_ in found], list(range(1, 9)))


if __name__ == "__main__":
    harness.main()
