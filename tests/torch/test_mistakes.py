# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes that people make: gradb finds node, line and step, and `why` names the cause.

mistakes/NAME.gdb contains the commands and NAME.expected gradb's output, compared as test_scripts.py says.
GRADB_WRITE_EXPECTED=1 rewrites the expected files."""
import os
import re

import harness
import test_scripts
import torches
from terminal import Terminal

HERE = harness.SOURCE / "tests" / "torch" / "mistakes"
WRITE = bool(os.environ.get("GRADB_WRITE_EXPECTED"))


RETRIES = """
import torch
net = torch.nn.Linear(3, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(1, 6):
    optimizer.zero_grad()
    x = torch.ones(5, 3)
    net(x).sum().backward()
    optimizer.step()
    for other in (x, x.T):
        try:
            x @ other
        except RuntimeError:
            print("the other way round")
raise KeyError("nobody")
"""


IN_PLACE = """
import torch
net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(1, 9):
    y = net(torch.ones(2, 4))
    y += 1
    y = y.sigmoid()
    if step == 3:
        y *= 2
    optimizer.zero_grad()
    y.sum().backward()
    optimizer.step()
"""


LAYERS = """
import torch
from torch import nn
class Layer(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.table, self.norm = nn.Embedding(rows, 2), nn.LayerNorm(2)
    def forward(self, ids, x):
        return self.norm(self.table(ids) + x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(9), Layer(5)])
    def forward(self, ids):
        x = 0
        for layer in self.layers:
            x = layer(ids, x)
        return x
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(1, 9):
    optimizer.zero_grad()
    net(torch.arange(step)).sum().backward()
    optimizer.step()
"""


PICKS = """
import torch
import torch.nn.functional as F
x = torch.zeros(4, 3)
whole = torch.arange(12).view(4, 3)
src = torch.tensor([[-4, 3], [2, 9]])
low = torch.tensor([0, -5])
last = torch.tensor([[0, -1, 0]])
net = torch.nn.Linear(3, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
ways = [%s]
for step in range(1, len(ways) + 1):
    optimizer.zero_grad()
    net(torch.ones(5, 3)).sum().backward()
    optimizer.step()
    try:
        ways[step - 1]()
    except (IndexError, RuntimeError):
        pass
"""

PICKS_LAST = """
import torch
net = torch.nn.Linear(3, 4)
net.register_buffer("table", torch.zeros(4, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(9):
    batch = {"src": torch.tensor([0, step])}
    rows = torch.tensor([[step, 0]])
    optimizer.zero_grad()
    net(torch.ones(5, 3)).sum().backward()
    %s
    optimizer.step()
"""

# The faulty index, and what is said about it.
FROM_END = "-%d to %d (negative ones count from the end), but "
ROWS = "There are 4 rows, " + FROM_END % (4, 3)
COLUMNS = "There are 3 positions along axis 1, " + FROM_END % (3, 2)
NO_FROM_END = "There are 4 rows, 0 to 3, but "
PICKED = [
    ("x[src]", ROWS + "element [1,1] of input/src is 9."),
    ("x[:, src]", COLUMNS + "element [0,0] of input/src is -4."),
    ("x[..., low]", COLUMNS + "element [1] of input/low is -5."),
    ("x[None, low]", ROWS + "element [1] of input/low is -5."),
    ("x[x[:, 0] == 0, src]", COLUMNS + "element [0,0] of input/src is -4."),
    ("x[last, src[0, 0]]", COLUMNS + "getitem"),
    ("x[[0, 1], low]", COLUMNS + "element [1] of input/low is -5."),
    ("whole[[0, 9]]", ROWS + "element [1] of the index list is 9."),
    ("x.__setitem__(src, 1.0)", ROWS + "element [1,1] of input/src is 9."),
    ("x.__setitem__((slice(None), low), x[:, :2])", COLUMNS + "element [1] of input/low is -5."),
    ("x.index_put((low,), x[:2])", ROWS + "element [1] of input/low is -5."),
    ("x.scatter(0, last, x)", NO_FROM_END + "element [0,1] of input/last is -1."),
    ("x.scatter_(dim=0, index=last, value=1.0)", NO_FROM_END + "element [0,1] of input/last is -1."),
    ("x.scatter_add(-2, last, x)", NO_FROM_END + "element [0,1] of input/last is -1."),
    ("x.gather(1, last)", "There are 3 positions along axis 1, 0 to 2, but element [0,1] of input/last is -1."),
    ("x.index_add(0, last[0], x[:3])", NO_FROM_END + "element [1] of getitem"),
    ("x.index_copy(0, last[0], x[:3])", NO_FROM_END + "element [1] of getitem"),
    ("x.index_fill(0, low, 1.0)", ROWS + "element [1] of input/low is -5."),
    ("x.take(src + 9)", "There are 12 elements, " + FROM_END % (12, 11) + "element [0,1] of add"),
    ("F.one_hot(src[1], 9)", "There are 9 classes, 0 to 8, but element [1] of getitem"),
    ("F.embedding_bag(last, x)", NO_FROM_END + "element [0,1] of input/last is -1."),
]


SIGMOIDS = """
import torch
torch.manual_seed(1)
layers = [layer for i in range(12) for layer in (torch.nn.Linear(16, 16), torch.nn.Sigmoid())]
net = torch.nn.Sequential(*layers, torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(torch.randn(8, 16)), torch.arange(8) % 4).backward()
    optimizer.step()
"""


PENALTY = """
import torch
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(1, 9):
    x = torch.ones(5, 3, requires_grad=True)
    optimizer.zero_grad()
    slope, = torch.autograd.grad(net(x).sigmoid().sum(), x, create_graph=True)
    loss = torch.nn.functional.mse_loss(net(x), x.sum(1, True)) + slope.norm()
    loss.backward()
    optimizer.step()
"""


NORMS = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm = torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)
    def forward(self, x):
        return self.norm(self.inner(x)).relu()
def loss_of(step):
    x = data[5 * step - 5:5 * step]
    return net(x + 0).pow(2).mean()
data = torch.arange(120.0).reshape(40, 3).cos()
data[17, 1] = float("inf")
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(1, 9):
    optimizer.zero_grad()
    loss_of(step).backward()
    optimizer.step()
"""


BEGINS = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 4))
torch.nn.init.zeros_(net[3].weight)
token = torch.nn.Parameter(torch.zeros(1, 1, 3))
optimizer = torch.optim.Adam([*net.parameters(), token], lr=1e-3)
for step in range(1, 9):
    optimizer.zero_grad()
    (net(torch.ones(2, 5, 3) + token) - 1).pow(2).mean().backward()
    optimizer.step()
"""


SLOPE = """
import torch
net = torch.nn.Linear(3, 1, bias=False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(1, 9):
    square = net(torch.ones(5, 3) * (step - 4)).pow(2)
    optimizer.zero_grad()
    torch.where(square > 0, square.sqrt(), square).mean().backward()
    optimizer.step()
"""


TWO = """
import torch
net = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(1, 9):
    output = net(torch.ones(5, 3))
    loss = output.sigmoid().mean() if step == 3 else (output - 1).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


ATTENTION = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.qkv, self.out = nn.Embedding(11, 8), nn.Linear(8, 24), nn.Linear(8, 11)
    def forward(self, x):
        q, k, v = self.qkv(self.embed(x)).chunk(3, -1)
        weights = nn.functional.dropout((q @ k.transpose(-2, -1)).softmax(-1))
        return torch.log_softmax(self.out(weights @ v), -1)
net = Net()
optimizer = torch.optim.Adam(net.parameters())
data = torch.randint(0, 11, (4, 6))
for step in range(1, 9):
    loss = nn.functional.nll_loss(net(data[:, :-1]).reshape(-1, 11), data[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


DEAD = """
import copy
import torch
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
torch.nn.init.constant_(net[0].bias, -20.0)
average = copy.deepcopy(net)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(1, 9):
    optimizer.zero_grad()
    net(torch.ones(5, 3)).pow(2).mean().backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(average.parameters(), net.parameters()):
            old.lerp_(new, 0.1)
"""


@torches.newest
class Still(torches.Folder):
    """Weights that do not move."""

    def test_a_gradient_that_is_zero(self):
        done = self.gradb([self.python, self.write("dead.py", DEAD)], "step 1", "watch WNC on net/0/weight", "step",
                          "why", "delete", "watch TZ on gradients", "continue", "why net/0/weight.grad", "kill")
        out = " ".join(done.stdout.split())
        self.assertRegex(out, r"BAD net/0/weight\.grad \(Gradient\) all 12 zero <- origin")
        self.assertRegex(out, r"To see where it becomes 0: `trace TZ on gradients`, `step`, then `why` on it\.")
        self.assertRegex(out, r"net/1/relu \(ReluBackward0\) lets no gradient through: no element of net/0/linear is "
                              r"above 0 where a gradient comes back")

    def test_one_that_is_frozen_on_purpose_says_so(self):
        text = DEAD.replace("optimizer =", "net[2].requires_grad_(False)\noptimizer =", 1)
        done = self.gradb([self.python, self.write("frozen.py", text)], "step 1", "watch WNC on weights", "step",
                          "info hits", "delete", "watch WNC on weights except net/2/", "step", "kill")
        self.assertIn("step 2\n  net/0/weight:0\n  net/0/bias:0\n  net/2/weight:0 (frozen when first seen)\n"
                      "  net/2/bias:0 (frozen when first seen)\nWatchpoint 1,", done.stdout)
        self.assertRegex(done.stdout, r"net/2/bias:0\n +frozen when first seen\n +rtol: set 1e-05")
        self.assertRegex(done.stdout, r"step 3\n  net/0/weight:0\n  net/0/bias:0\nWatchpoint 2,")
        done = harness.run_gradb("-nx", "--batch", "--json", "--listen", "127.0.0.1:0", "-ex", "step", "-ex",
                                 "watch WNC on net/2/weight,net/0/weight", "-ex", "step", "run", "--", self.python,
                                 "frozen.py", env=torches.environment(), cwd=self.folder)
        hits = harness.records(done, "hit")
        self.assertEqual({hit["node"]: hit.get("frozen") for hit in hits},
                         {"net/0/weight": None, "net/2/weight": True})

    def test_norms_of_gradients_are_no_activations(self):
        text = DEAD.replace("    optimizer.step()", "    torch.nn.utils.clip_grad_norm_(net.parameters(), 1)\n"
                            "    optimizer.step()")
        done = self.gradb([self.python, self.write("clipped.py", text)], "step 1", "info nodes clip_grad_norm_/*",
                          "watch DU steps=1 on activations", "step", "kill")
        self.assertRegex(done.stdout, r"norm +other +float32 \(\)")
        self.assertNotRegex(done.stdout, r"activation +\S+ \(.* clip_grad_norm_/")
        self.assertRegex(done.stdout, r"dead_units \(DU\), step 2\n  net/1/relu:0 [^\n]*\nWatchpoint 1,")

    def test_averaged_weights_have_none(self):
        text = DEAD.replace("net(torch", "net[2](torch").replace("ones(5, 3)", "ones(5, 4)")
        done = self.gradb([self.python, self.write("average.py", text)], "step 1", "watch GM on gradients", "step",
                          "kill")
        self.assertRegex(done.stdout, r"net/0/weight\.grad:0 age_ge=1")
        self.assertNotIn("average", done.stdout.replace("average.py", ""))

    def test_an_update_that_is_rounded_away(self):
        text = DEAD.replace("-20.0", "20.0").replace("lr=1e-3", "lr=1e-12")
        done = self.gradb([self.python, self.write("small.py", text)], "step 1", "watch WNC on net/0/weight", "step",
                          "why", "kill")
        self.assertIn("Adam holds net/0/weight with a learning rate of 1e-12, and its gradient is not all 0.",
                      " ".join(done.stdout.split()))


@torches.newest
class Loss(torches.Folder):
    """`why loss` where the loss is not the first result that is differentiated, or is gone."""

    def test_the_status_line_has_no_sign_of_nan(self):
        text = NORMS.replace("loss_of(step).backward()", "(loss_of(step) * (torch.ones(1) * float('inf') * 0)).backward()")
        with Terminal(run=[self.python, self.write("negative.py", text)]) as t:
            t.expect_ready()
            t.command("step", r"^Stopped at the end of step 1")
            self.assertRegex(t.screen.display[-1], r" loss nan( |$)")

    def test_what_begins_at_zero_is_no_mistake(self):
        """One matrix of many, and a vector with axes of length 1, whose updates are as large as they are themselves."""
        done = self.gradb([self.python, self.write("begins.py", BEGINS)], "step 5", "why loss", "kill")
        self.assertIn("Nothing upstream stands out", done.stdout)
        done = self.gradb([self.python, self.write("begins.py", BEGINS.replace("lr=1e-3", "lr=2"))], "step 5",
                          "why loss", "kill")
        self.assertIn("The learning rate is 2.", done.stdout)

    def test_that_is_made_in_another_way_in_one_step(self):
        done = self.gradb([self.python, self.write("two.py", TWO)], "watch TO on all", "step 2", "why loss", "step",
                          "why loss", "step", "why loss", "kill")
        self.assertEqual(re.findall(r"\n\S+ +(\w+) \(\w+\)  \d", done.stdout), ["sum", "mean", "sum"])

    def test_a_softmax_over_a_wrong_axis(self):
        for text, told in (
                (ATTENTION, "Nothing upstream stands out"),
                (ATTENTION.replace("softmax(-1)", "softmax(-2)"),
                 "net/softmax (softmax) is computed over axis -2 of (4, 5, 5), but net/matmul_1 (matmul), which takes its "
                 "rows as weights, sums over the last axis"),
                (ATTENTION.replace("@ v), -1)", "@ v), dim=1)"),
                 "net/log_softmax (log_softmax) is computed over axis 1 of (4, 5, 11): the probabilities that a label "
                 "picks from do not add up to 1. The 11 classes of nll_loss (nll_loss) are along axis 2.")):
            with self.subTest(told):
                done = self.gradb([self.python, self.write("attention.py", text)], "step 2", "why loss", "kill")
                self.assertIn(told, " ".join(done.stdout.split()))

    def test_before_there_is_any(self):
        done = self.gradb([self.python, self.write("slope.py", SLOPE)], "why loss")
        self.assertIn("error: the loss is unknown before the end of the first step", done.stderr)

    def test_a_slope_that_is_infinite(self):
        """The forward pass is finite: where() hides nothing from the gradient."""
        done = self.gradb([self.python, self.write("slope.py", SLOPE)], "catch overflow", "continue", "why", "kill")
        self.assertIn("Overflow, step 4, backward, backward/sqrt (SqrtBackward0)", done.stdout)
        self.assertIn("(SqrtBackward0): the slope of a square root is infinite at 0, and pow is 0 or nearly 0",
                      " ".join(done.stdout.split()))

    def test_of_what_has_a_gradient_inside(self):
        done = self.gradb([self.python, self.write("penalty.py", PENALTY)], "step 2", "why loss", "kill")
        self.assertRegex(done.stdout, r"\n(BAD|\?|ok) +add \(add\) +")

    def test_a_normalisation_takes_an_infinity_in(self):
        """Its running mean is bad too, but does not enter the result; the batch is to blame."""
        done = self.gradb([self.python, self.write("norms.py", NORMS)], "catch overflow", "continue", "why", "kill")
        self.assertNotIn("net/norm/running_mean", done.stdout)
        self.assertRegex(done.stdout, r"BAD .*input/data \(Input\)  1 \+Inf of 120.*<- origin")

    def test_a_normalisation_that_has_seen_no_batch(self):
        """Other buffers may be all 0, and masks all True."""
        text = NORMS.replace('float("inf")', "0.5")
        done = self.gradb([self.python, self.write("eval.py", text.replace("net = Net()", "net = Net().eval()"))],
                          "step 3", "why loss", "kill")
        self.assertIn("net/norm/running_mean is still all 0, its initial value: its normalization has seen no batch yet",
                      " ".join(done.stdout.split()))
        text = text.replace("(x + 0)", "((x + net.shift) * mask)").replace(
            "net = Net()", "net = Net()\nmask = torch.ones(5, 3).bool()\nnet.register_buffer('shift', torch.zeros(5, 3))")
        done = self.gradb([self.python, self.write("plain.py", text)], "step 3", "why loss", "kill")
        self.assertIn("Nothing upstream stands out", done.stdout)
        self.assertNotIn("learning rate", done.stdout)

    def test_that_is_not_finite_and_gone(self):
        made, later = NORMS.split("data = "), "for step in"
        data = made[1][:made[1].index("net = Net()")]
        text = NORMS.replace("data = " + data, "").replace(later, "data = " + data + later)  # gradb sees it made
        done = self.gradb([self.python, self.write("norms.py", text)], "catch nan-loss", "continue", "why loss", "kill")
        self.assertRegex(done.stdout, r"BAD .*setitem \(setitem\)  1 \+Inf of 120; .*, of step 1  <- origin")
        done = self.gradb([self.python, self.write("norms.py", NORMS)], "catch nan-loss", "continue", "why loss", "why",
                          "kill")
        self.assertIn("nan-loss, step 4: loss", done.stdout)
        self.assertRegex(done.stdout, r"\nBAD [^\n]*mean \(mean\) +no value\n")
        self.assertEqual(" ".join(done.stdout.split()).count("input/data is NaN or Inf where it enters the "
                                                             "graph: 1 +Inf of 120; min -1, max 1. It is data, or was "
                                                             "left by an earlier step that gradb did not examine. "
                                                             "Whether that reached loss_of/mean is unknown: the values "
                                                             "in between are gone."), 2, done.stdout)
        text = NORMS.replace(".mean()", ".mean() / (step != 3)").replace('data[17, 1] = float("inf")', "")
        done = self.gradb([self.python, self.write("norms.py", text)], "catch nan-loss", "continue", "why loss", "kill")
        self.assertRegex(" ".join(done.stdout.split()), r"It is not finite, but none of the remaining values that it was computed from "
                         r"is NaN or Inf: \d+ of \d+ values are gone with the step\. `catch overflow`")


CUTS = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
    def forward(self, x):
        h = self.first(x).tanh()
        %s
        return self.last(h)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(5, 4)
for step in range(1, 9):
    optimizer.zero_grad()
    (net(x) - 1).pow(2).mean().backward()
    optimizer.step()
"""

# What cuts off the first layer, and what is said about it.
CUT = [
    ("h = h.detach() + x", "net/detach (detach) cuts it off from the loss."),
    ("h = h.detach().relu() * 2", "net/detach (detach) cuts it off from the loss."),
    ("h = h.data.clamp(-1, 1)", "net/clamp (clamp) received .data of its input, which carries no gradient."),
    ("h = torch.from_numpy(h.detach().numpy().copy()).to(x.device)", "leave the graph through numpy() at cut.py:9, and no gradient"),
    ("h = torch.tensor(h.tolist())", "leave the graph through tolist() at cut.py:9, and no gradient"),
    ("h = x * h.mean().item()", "leave the graph through item() at cut.py:9, and no gradient"),
]

HEALTHY = """
import torch
from torch import nn
torch.manual_seed(1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.key, self.query = (nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 8),
                                                       nn.Linear(8, 8))
        self.layer, self.last = nn.LayerNorm(8), nn.Linear(8, 1)
    def forward(self, x):
        h = self.norm(self.first(x)).tanh()
        weights = (self.query(h) @ self.key(h).transpose(0, 1)).softmax(-1)
        return self.last(self.layer(weights @ h))
net, cell = Net(), nn.RNNCell(4, 4)
optimizer = torch.optim.Adam([*net.parameters(), *cell.parameters()], lr=1e-3)
x, ones, mask = torch.randn(16, 4), torch.ones(16, 1), torch.ones(16, 1).long()
for step in range(1, 9):
    optimizer.zero_grad()
    state = cell(x, torch.zeros(16, 4))
    ((net(x) - ones) * mask + state.mean()).pow(2).mean().backward()
    optimizer.step()
"""

DIVERGES = """
import torch
torch.manual_seed(1)
net = torch.nn.Linear(10, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
x = torch.randn(64, 10) * 3
for step in range(30):
    optimizer.zero_grad()
    (net(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    optimizer.step()
"""

BRANCH = """
import torch
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.ones(8, 4)
for step in range(1, 15):
    divisor = x.sum() * 0 if step == 8 else 1.0
    optimizer.zero_grad()
    (net(x) / divisor).pow(2).mean().backward()
    optimizer.step()
"""

CHOICE = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 2)
    def forward(self, x, step):
        y, one, zero = self.fc(x), x.sum() * 0 + 1, x.sum() * 0
        return y / (one if step < 8 else zero if step == 8 else one)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.ones(8, 4)
for step in range(1, 15):
    optimizer.zero_grad()
    y = net(x, step)
    mean, maximum = y.mean(), y.abs().max()
    if step != 8:
        (mean if step < 6 else maximum).backward()
    optimizer.step()
"""

LOOP = """
import torch
net = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(1, 5):
    x = torch.zeros(16, 8)
    for i in range(16):
        for c in range(8):
            x[i, c] += 1
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
"""

SKIPS = """
import torch
net = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 24)
x = torch.ones(4, 8)
for step in range(1, 9):
    with torch.autocast(x.device.type, dtype=torch.float16):
        loss = (net(x).float() * (1e30 if step == 3 else 1)).pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


ONE_CLASS = """
import torch
net = torch.nn.Linear(4, %d)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(8, 4)
for step in range(1, 9):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(x) + %s, torch.zeros(8).long()).backward()
    optimizer.step()
"""

# A generator whose pass comes first in the step that the critic's optimizer ends.
GAN = """
import torch
from torch import nn
torch.manual_seed(1)
G = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 1))
of_d, of_g = torch.optim.Adam(D.parameters(), 1e-3), torch.optim.Adam(G.parameters(), 1e-3)
for step in range(1, 9):
    %s
    of_d.zero_grad()
    ((D(torch.randn(8, 2)) - 1).pow(2).mean() + D(fake.detach()).pow(2).mean()).backward()
    of_d.step()
    of_g.zero_grad()
    (D(fake) - 1).pow(2).mean().sqrt().backward()
    of_g.step()
"""

TEACHER = """
import torch
T, S, S2 = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
T.eval()
optimizer = torch.optim.SGD([*S.parameters(), *S2.parameters()], lr=0.1)
for step in range(1, 9):
    x = torch.randn(8, 4)
    %s
    s = S(x)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(%s, t.argmax(1)).backward()
    optimizer.step()
"""

AVERAGE = """
import copy
import torch
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
target, head = copy.deepcopy(net).requires_grad_(False), torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for step in range(1, 9):
    x = torch.randn(8, 4)
    with torch.no_grad():
        z = target(x)
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(head((net(x) * 2).relu().add(1).detach() + 1), z).backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(target.parameters(), net.parameters()):
            old.mul_(0.9).add_(new, alpha=0.1)
"""

# The weights are NaN from step 2 on.
LONG_NAN = """
import torch
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(net.parameters())
for step in range(1, 9):
    x = torch.ones(8, 4) * (float("nan") if step == 2 else 1)
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
    with torch.no_grad():
        net.bias.clamp_(-1, 1)
"""


@torches.both
class Paths(torches.Folder):
    """What cuts a path from the parameters to the loss, or removes their gradients."""

    def ask(self, text, *commands):
        done = self.gradb([self.python, self.write("cut.py", text)], *commands, "kill")
        self.assertEqual(done.stderr, "")
        return " ".join(done.stdout.split())

    def test_what_cuts(self):
        for line, said in CUT:
            with self.subTest(line):
                out = self.ask(CUTS % line, "step 4", "why loss")
                self.assertIn("No gradient reaches net/first/weight: ", out)
                self.assertIn(said, out)
                self.assertIn("Of the 4 parameters that SGD holds, 2 have no gradient: net/first/weight and "
                              "net/first/bias.", out)

    def test_zeroed_between_backward_and_step(self):
        for clears in ("optimizer.zero_grad()", "net.zero_grad(set_to_none=False)"):
            with self.subTest(clears):
                text = CUTS.replace("    optimizer.zero_grad()\n", "").replace(
                    "    optimizer.step()", f"    {clears}\n    optimizer.step()")
                self.assertIn("The gradients are gone when SGD steps: the backward pass leaves one in "
                              "net/first/weight.grad", self.ask(text % "pass", "step 6", "why loss"))
                self.assertNotIn("gradients are gone", self.ask(CUTS % "pass", "step 6", "why loss"))

    def test_an_optimizer_that_did_not_step(self):
        text = CUTS.replace("    optimizer.step()", "    if step %% 4 == 3:\n        other.step()\n    optimizer.step()").replace(
            "net.parameters()", "net.last.parameters()").replace(
                "x = torch", "other = torch.optim.Adam(net.first.parameters())\nx = torch")
        out = self.ask(text % "pass", "step 4", "watch WNC on weights", "step", "why net/first/weight")
        self.assertIn("Adam holds net/first/weight but did not step in step 5: it last stepped in step 3.", out)


@torches.newest
class Truth(torches.Folder):
    """What is said about a training is true, also where nothing is wrong."""

    def ask(self, text, *commands):
        done = self.gradb([self.python, self.write("train.py", text)], *commands, "kill")
        return " ".join(done.stdout.split())

    def test_inputs_of_one_value_and_small_vectors(self):
        out = self.ask(HEALTHY, "step 3", "why loss", "why")
        self.assertNotIn("BAD", out)
        self.assertNotIn("learning rate", out)
        self.assertEqual(len(re.findall(r"Nothing upstream stands out: \d+ of \d+ "
                                        r"values were examined\. The loss was [\d.]+ at step 1,", out)), 2)

    def test_gradients_that_are_zero_by_algebra(self):
        out = self.ask(HEALTHY, "step 3", "why net/first/bias.grad", "why net/key/bias.grad", "why cell/weight_hh.grad",
                       "why net/query/bias.grad", "why net/last/bias.grad")
        self.assertEqual(re.findall(r"The gradient of (\S+) is 0 by algebra, apart from rounding", out),
                         ["net/first/bias", "net/key/bias", "cell/weight_hh"])
        self.assertEqual(out.count("by algebra, apart from rounding, and this is normal: "), 2)
        self.assertIn("For a state that starts at 0 this is normal, unless the state should be carried over.", out)
        self.assertIn("net/norm/batch_norm (batch_norm) removes any common shift", out)
        self.assertIn("net/softmax (softmax) removes any common shift", out)
        self.assertIn("cell/rnn_tanh_cell (rnn_tanh_cell) multiplies everything that depends on it by", out)

    def test_a_softmax_over_one_class(self):
        """The loss is 0 whatever the network does, and nothing is predicted with certainty."""
        ask = ["trace GV abs_mean_lt=1e-9 on gradients", "step 2", "why net/weight.grad", "why loss"]
        out = self.ask(ONE_CLASS % (1, "0"), *ask)
        self.assertNotIn("certain", out)
        self.assertNotIn("this is normal", out)
        self.assertIn("has a single class: the softmax over one score is always 1", out)
        out = self.ask(ONE_CLASS % (3, "torch.tensor([60.0, 0.0, 0.0])"), *ask)
        self.assertNotIn("a single class", out)
        self.assertRegex(out, r"The loss is [\d.e-]+: the labels are already predicted with near certainty")

    def test_a_loss_of_which_nothing_is_left(self):
        out = self.ask(HEALTHY, "watch TO on all", "continue", "why loss")
        self.assertIn("Nothing upstream could be examined: 0 of ", out)
        self.assertRegex(out, r"The loss was [\d.]+ at step 1, (\S+ at its lowest \(step \d\), )?and is [\d.]+ at step 8\.")
        self.assertNotIn("stands out", out)
        self.assertNotIn("run-to", out)

    def test_the_loss_is_that_of_the_optimizer_that_ends_the_step(self):
        for step in ("1", "3"):
            out = self.ask(GAN % "fake = G(torch.randn(8, 4))", "step " + step, "watch TO on all", "step 2", "why loss")
            self.assertRegex(out, r"(\?|ok|BAD) add \(add\) ")

    def test_what_ran_without_gradients_comes_before_a_detach(self):
        out = self.ask(GAN % "with torch.no_grad(): fake = G(torch.randn(8, 4))", "step 3", "why G/0/weight")
        self.assertRegex(out, r"No gradient reaches G/0/weight: G/\d/\w+ \(\w+\) ran with gradients disabled")

    def test_a_teacher_and_integers(self):
        out = self.ask(TEACHER % ("with torch.no_grad(): t = T(x)", "s"), "step 2", "why T/weight", "why loss")
        self.assertIn("Nothing updates T/weight: no optimizer holds it.", out)
        self.assertNotIn("No gradient reaches", out)
        out = self.ask(TEACHER % ("t = T(x)", "s.argmax(1).float()[:, None] * S2(x)"), "step 2", "why S/weight", "why loss")
        self.assertEqual(len(re.findall(r"No gradient reaches S/weight: argmax \(argmax\) produces integers or booleans",
                                        out)), 2, out)

    def test_an_average_of_weights_is_no_way_to_the_loss(self):
        for watched in ((), ("watch TO on all", "step 2")):
            out = self.ask(AVERAGE, "step 3", *watched, "why loss")
            self.assertIn("No gradient reaches net/0/weight: detach (detach) cuts it off from the loss.", out)

    def test_where_it_began_is_not_known(self):
        out = self.ask(LONG_NAN, "step 5", "watch TO on weights", "step", "why net/weight", "why net/bias",
                       "why net/weight.grad")
        self.assertNotIn("is the first value that", out)
        self.assertNotIn("from outside", out)
        self.assertNotIn("is not all zero: no value", out)
        self.assertIn("Where that began is unknown.", out)

    def test_a_loss_that_grew(self):
        out = self.ask(DIVERGES, "step 6", "why loss")
        self.assertRegex(out, r"The loss diverges: from [\d.]+ at step 1 to [\d.e+]+ at step 6, [\d.e+]+ times, and it rose "
                              r"in each of the last 5 steps\. net/weight reaches a magnitude of [\d.e+]+")
        self.assertIn("The learning rate is 1.", out)
        self.assertNotIn("stands out", out)

    def test_an_input_that_comes_later(self):
        for catches in ("catch overflow", "watch TO on all"):
            out = self.ask(BRANCH, catches, "continue", "why", "inputs")
            self.assertIn("div (div) divides by 0: 1 of 1 elements of the divisor mul are 0.", out)

    def test_a_graph_of_an_earlier_step_says_so(self):
        """Where nobody watched the step's operators, the graph lacks what only that step ran."""
        out = " ".join(self.ask(BRANCH, "catch nan", "continue", "why").split())
        self.assertRegex(out, r"The graph is that of step 1: the operators of step \d+ were not recorded\.")
        self.assertNotIn("The graph is that of step", self.ask(BRANCH, "catch overflow", "continue", "why"))

    def test_another_input_that_is_there_already(self):
        for native in ("1", "0"):
            done = self.gradb([self.python, self.write("choice.py", CHOICE)], "watch TO on all", "continue", "why",
                              "inputs", "delete 1", "watch TO on *linear", "step 2",
                              "inputs net/div", "kill", GRADB_NATIVE=native)
            out = " ".join(done.stdout.split())
            self.assertIn("net/div (div) divides by 0: 1 of 1 elements of the divisor net/mul_1 are 0.", out)
            self.assertRegex(out, r"└─ net/mul_1 \(mul\), .* net/div \(div\) ├─ net/fc/linear \(linear\), has 3 inputs "
                                  r"└─ net/add \(add\), has 1 input")

    def test_a_gradient_that_comes_another_way(self):
        done = self.gradb([self.python, self.write("choice.py", CHOICE)], "watch TO on all", "step 5",
                          "inputs backward/net/div", "step", "inputs backward/net/div", "kill")
        before, after = re.findall(r"^backward/net/div .*\n(?:[├└].*\n)+", done.stdout, re.M)
        self.assertIn("backward/mean", before)
        self.assertNotIn("backward/mean", after)
        self.assertIn("backward/abs", after)

    def test_a_loop_that_writes_elements(self):
        done = self.gradb([self.python, self.write("loop.py", LOOP)], "step 2", "why loss", "why loss -a", "kill")
        self.assertRegex(done.stdout, r"\.\.\. [\d,]+ more values like these hidden \.\.\.")
        self.assertLess(len(done.stdout.splitlines()), 120)
        self.assertLess(max(len(line) for line in done.stdout.splitlines() if line.startswith("?")), 110)

    def test_an_output_that_is_not_the_first(self):
        text = LOOP.replace("net(x).pow(2).mean()", "torch.linalg.slogdet(net.weight[:, :2] * (step != 3))[1]")
        out = self.ask(text, "catch overflow", "continue", "why")
        self.assertIn("BAD linalg_slogdet:1 (linalg_slogdet) 1 -Inf of 1 <- origin", out)

    def test_steps_that_grad_scaler_skips(self):
        if torches.release_of(self.python) < (2, 3):
            self.skipTest("GradScaler is for CUDA alone")
        out = self.ask(SKIPS, "catch skip", "continue", "why", "continue", "continue", "why")
        self.assertIn("GradScaler skipped the update of SGD in step 1 because its gradients are not finite, and lowers "
                      "its scale: an occasional skip is harmless.", out)
        self.assertIn("The scale does not cause a loss that is not finite", out)
        out = self.ask(SKIPS, "catch overflow", "continue", "why")
        self.assertRegex(out, r"exceeds the range of float16: .* GradScaler multiplies this pass by 1\.67772e\+07; the tree's "
                              r"values are shown without that factor\.")


@torches.newest
class Vanishing(torches.Folder):
    """A gradient that is too small is followed back to where it fell."""

    def test_many_sigmoids(self):
        done = self.gradb([self.python, self.write("sigmoids.py", SIGMOIDS)],
                          "watch GV abs_mean_lt=1e-8 on gradients", "continue", "why net/0/weight.grad", "kill")
        out = " ".join(done.stdout.split())
        self.assertRegex(out, r"On its way back from backward/cross_entropy, through \d+ operators, the gradient falls "
                              r"from a mean magnitude of 1 to [\d.]+e-\d\d\. 12 of them are SigmoidBackward0: each "
                              r"leaves 0\.2\d? of it on average, for example backward/net/\d+/sigmoid, from")
        self.assertRegex(out, r"12 of them are AddmmBackward0: .* The root mean square of its weight net/\d+/weight is "
                              r"0\.1\d+, which lets about 0\.5\d of a gradient through; 0\.25 would let all of it")
        self.assertRegex(out, r"BAD [^A-Z]*backward/net/\d+/sigmoid \(SigmoidBackward0\)[^<A-Z]*(\[GV\])?[^<]*<- "
                              r"origin")

    def test_where_the_weights_alone_are_watched(self):
        done = self.gradb([self.python, self.write("sigmoids.py", SIGMOIDS)], "watch GV abs_mean_lt=1e-8 on *.grad",
                          "continue", "why net/0/weight.grad", "kill")
        self.assertRegex(" ".join(done.stdout.split()), r"before net/0/weight\.grad:0, at an operator that is unknown "
                                                        r"in this step: watch `gradients` to find it")


@torches.both
class Raised(torches.Folder):
    """Exceptions stop the run where they are raised."""

    def test_caught_and_not(self):
        done = self.gradb([self.python, self.write("retries.py", RETRIES)], "step 2", "catch exception", "continue",
                          "continue", "catch exception uncaught", "continue", "print net/bias", "catch exception off",
                          "continue")
        self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
        out = " ".join(done.stdout.split())
        for step in (3, 4):
            self.assertIn(f"Exception, step {step}, matmul (matmul) matmul raised RuntimeError: ", out)
        self.assertEqual(out.count("matmul raised"), 2, out)
        self.assertIn("the script ends with KeyError: 'nobody' (retries.py:15 in <module>)", out)
        self.assertRegex(out, r"net/bias:0.*Exceptions no longer stop the training\..*KeyError: 'nobody'")

    def test_which_of_many_layers(self):
        """Nobody watched operators when it was raised: the module distinguishes two layers on the same line."""
        done = self.gradb([self.python, self.write("layers.py", LAYERS)], "continue", "why")
        self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
        out = " ".join(done.stdout.split())
        self.assertIn("Exception, step 6, forward, net/layers/1/table/embedding (embedding)", out)
        self.assertIn("index out of range in self. There are 5 rows, 0 to 4, but element [5] of arange is 5.", out)

    def test_which_number_of_what_picks(self):
        text = PICKS % ",\n".join("lambda: " + way for way, _ in PICKED)
        asked = [command for way in PICKED for command in ("continue", "why")]
        done = self.gradb([self.python, self.write("picks.py", text)], "step 1", "catch exception", *asked, "kill")
        answers = " ".join(done.stdout.split()).split("Exception, step ")[1:]
        self.assertEqual(len(answers), len(PICKED), done.stdout + done.stderr)
        for (way, said), answer in zip(PICKED, answers):
            with self.subTest(way):
                self.assertIn(said, answer)

    def test_which_number_where_nobody_looked(self):
        """Up to the exception that ends the program: its variables contain the index."""
        for way, said in (("torch.relu(net.table[:, batch['src']])", COLUMNS + "element [1] of tensor is 3."),
                          ("net.table[-1, batch['src']].add_(1)", COLUMNS + "element [1] of tensor is 3."),
                          ("net.table.index_select(dim=1, index=batch['src']) * 2",
                           "There are 3 positions along axis 1, 0 to 2, but element [1] of tensor is 3."),
                          ("torch.gather(net.table, -1, rows)",
                           "There are 3 positions along axis 1, 0 to 2, but element [0,0] of tensor_1 is 3.")):
            with self.subTest(way):
                done = self.gradb([self.python, self.write("last.py", PICKS_LAST % way)], "continue", "why")
                self.assertIn("Exception, step 4", done.stdout)
                self.assertIn(said, " ".join(done.stdout.split()))

    def test_all_lines_of_what_it_says(self):
        said = "no file \\\n  of the \u00e9poch:\n" + 60 * "step-000 "
        calls = "\nException raised from at /pytorch/x.cpp:1 (most recent call first):\nframe #0: c10::f"
        done = self.gradb([self.python, self.write("long.py", RETRIES.replace('"nobody"', repr(said + calls)).replace(
            "KeyError", "OSError"))], "continue")
        self.assertIn("OSError: no file \\ of the \u00e9poch: " + 60 * "step-000 " + "(long.py:15 in <module>)\n",
                      done.stdout)
        done = self.gradb([self.python, self.write("long.py", RETRIES.replace('"nobody"', repr(500 * "\u00e9")))],
                          "continue")
        self.assertRegex(done.stdout, "KeyError: '(\u00e9){399}\\.\\.\\. \\(long\\.py:15 in <module>\\)\n")

    def test_what_wrote_to_a_value_that_backward_needs(self):
        done = self.gradb([self.python, self.write("in_place.py", IN_PLACE)], "catch exception", "continue")
        self.assertIn("Exception, step 3\nbackward raised RuntimeError: mul_ (in_place.py:10) overwrote a value that "
                      "the gradient needs: output 0 of Sigmoid (in_place.py:", done.stdout)

    def test_the_status_of_a_batch_says_it(self):
        program = [self.python, self.write("retries.py", RETRIES)]
        done = self.gradb(program, "continue")  # to the exception that nobody catches
        self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
        self.assertIn("Exception, step 6\n", done.stdout)
        done = self.gradb(program, "catch exception off", "step 2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


@torches.newest
class LossAlone(torches.Folder):
    """What is found where only the loss was watched."""

    def test_a_recurrence_that_makes_longer(self):
        done = self.gradb([self.python, torches.SCRIPTS / "rnn.py", "--steps", "4", "--mistake", "exploding"],
                          "watch 'loss > 1e6'", "continue", "why", "kill")
        out = " ".join(done.stdout.split())
        self.assertIn("model/cell/keep/linear runs 24 times on its own output, each time multiplying by "
                      "model/cell/keep/weight, which lengthens its input by a factor of 2.5 on average", out)
        self.assertRegex(out, r"model/cell/keep/linear \(linear\)[^<│]* <- origin")


@torches.both
class Mistake(torches.Case):
    written = {}

    def check(self, name, script="mlp"):
        """Runs the command file on the script with the mistake and compares line by line."""
        release = torches.release_of(self.python)
        done = harness.run_gradb("-nx", "--batch", "--listen", "127.0.0.1:0", "-x", HERE / (name + ".gdb"), "run", "--",
                                 *torches.warm(self.python), str(torches.SCRIPTS / (script + ".py")), "--steps", "12",
                                 "--mistake", name, env=torches.environment(), timeout=4 * harness.DEADLINE)
        self.assertIn(done.returncode, (0, 4), done.stdout + done.stderr)  # 4: something fired
        lines = [test_scripts.plain(line) for line in (done.stdout + done.stderr).splitlines()]
        path = HERE / (name + ".expected")
        if WRITE:
            self.written.setdefault(name, {})[release[0]] = lines
            if len(self.written[name]) == 2:
                path.write_text(test_scripts.merged(self.written[name][1], self.written[name][2]), encoding="utf-8")
            return
        expected = test_scripts.read_expected(path, release, lines)
        wrong = [f"line {i + 1}: {a!r}\nexpected {b!r}" for i, (a, b) in enumerate(zip(lines, expected))
                 if not test_scripts.same(a, b)]
        self.assertFalse(wrong, "\n".join(wrong[:3] + ["the whole output:"] + lines))
        self.assertEqual(len(lines), len(expected), "\n".join(lines))

    def test_logarithm_of_zero(self):
        self.check("log-zero")

    def test_gradients_not_set_back(self):
        self.check("no-zero-grad")

    def test_gradients_of_another_optimizer_not_set_back(self):
        self.check("second-optimizer", "gan")

    def test_rate_too_high(self):
        self.check("huge-lr")

    def test_detached(self):
        self.check("detached")

    def test_wrong_axis_and_a_layer_without_gradients(self):
        self.check("axis")

    def test_dead_units(self):
        self.check("dead-relu")

    def test_layers_that_nobody_trains(self):
        self.check("untrained")

    def test_beyond_float16(self):
        self.check("half")

    def test_label_out_of_range(self):
        self.check("label")

    def test_sum_instead_of_mean(self):
        self.check("sum-loss")

    def test_exploding_recurrence(self):
        self.check("exploding", "rnn")

    def test_each_against_each(self):
        self.check("broadcast", "rnn")


if __name__ == "__main__":
    harness.main()
