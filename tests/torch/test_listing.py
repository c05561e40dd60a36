# SPDX-License-Identifier: GPL-3.0-or-later
"""Source text that is not on disk: code as a notebook compiles it, whose lines are only in linecache."""
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
        done = self.gradb([self.python, script], "step 2", "next", "next", "list", "break sum", "continue", "backtrace",
                          "annotate /nowhere/cell_1.py")
        self.assertEqual(done.stderr, "")
        self.assertGreaterEqual(done.stdout.count("# of the cell"), 3, done.stdout)

    def test_a_file_that_no_node_names_is_refused(self):
        script = self.write("notebook.py", NOTEBOOK)
        done = self.gradb([self.python, script], "step 2", "agent source /etc/passwd")
        self.assertIn("no node was created in /etc/passwd", done.stderr)


if __name__ == "__main__":
    harness.main()
