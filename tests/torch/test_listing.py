# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists that no other test has: source text that is only in linecache, as of a notebook; initial weights."""
import harness
import torches

NOTEBOOK = """
import linecache
import torch
net = torch.nn.Linear(3, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
CELL = '''def train():
    loss = net(torch.ones(5, 3)).sum()  # of the cell
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
'''
NAME = "/nowhere/cell_1.py"
linecache.cache[NAME] = (len(CELL), None, CELL.splitlines(True), NAME)
exec(compile(CELL, NAME, "exec"))
for step in range(5):
    train()
"""


@torches.both
class Cell(torches.Folder):
    """The commands that show source text."""

    def test_text_that_linecache_alone_has(self):
        script = self.write("notebook.py", NOTEBOOK)
        done = self.gradb([self.python, script], "step 2", "next", "next", "list", "break train/sum", "continue", "backtrace",
                          "annotate /nowhere/cell_1.py")
        self.assertEqual(done.stderr, "")
        self.assertGreaterEqual(done.stdout.count("# of the cell"), 3, done.stdout)

    def test_a_file_that_no_node_names_is_refused(self):
        script = self.write("notebook.py", NOTEBOOK)
        done = self.gradb([self.python, script], "step 2", "agent source /etc/passwd")
        self.assertIn("no node was created in /etc/passwd", done.stderr)


WEIGHTS = """
import torch
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(300, 96)
        self.lstm = torch.nn.LSTM(96, 40)
        self.scaled = torch.nn.Linear(40, 32)
        self.basis = torch.nn.Linear(40, 32)
        self.tall = torch.nn.Linear(8, 32)
        self.large = torch.nn.Linear(32, 64)
        with torch.no_grad():
            self.embedding.weight.mul_(0.05)
            self.scaled.weight.normal_().div_(self.scaled.weight.norm(dim=1, keepdim=True))
            torch.nn.init.orthogonal_(self.basis.weight)
            torch.nn.init.orthogonal_(self.tall.weight)
            self.large.weight.normal_(std=2)
    def forward(self, x):
        y, _ = self.lstm(self.embedding(x))
        return self.large(self.scaled(y) + self.basis(y)).mean() + self.tall(y[..., :8]).mean()
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    optimizer.zero_grad()
    net(torch.arange(20).reshape(5, 4)).backward()
    optimizer.step()
"""


@torches.both
class Weights(torches.Folder):
    """Initial weights against the usual schemes."""

    def test_schemes(self):
        script = self.write("weights.py", WEIGHTS)
        done = self.gradb([self.python, script], "info init", options=("--json",))
        found, = harness.records(done, "init", mixed=True)
        scheme = {row["node"].replace("net/", ""): row["scheme"] for row in found["list"]}
        self.assertIn("default (uniform, 1 / sqrt hidden)", scheme["lstm/weight_ih_l0"])
        self.assertNotIn("orthogonal", scheme["scaled/weight"])  # its rows have length 1
        self.assertEqual((scheme["basis/weight"], scheme["tall/weight"]), ("orthogonal", "orthogonal"))
        alarm, = found["alarms"]  # none of the embedding, in which nothing is multiplied
        self.assertRegex(alarm, r"large/weight: std .* if it was drawn at random, activations grow there")


if __name__ == "__main__":
    harness.main()
