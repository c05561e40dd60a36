# SPDX-License-Identifier: GPL-3.0-or-later
"""Names as people type them, on a real training: dots, ends, classes of modules, tied and replaced parameters."""
import harness
import torches

SCRIPT = """
import torch
from torch import nn
torch.manual_seed(0)
class Attn(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)
    def forward(self, x):
        return torch.softmax(self.proj(x), -1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = nn.ModuleList([Attn(), Attn()])
        self.plain = [nn.Linear(4, 4)]
        self.fc = nn.Linear(4, 3)
        self.twin = self.fc
        self.emb = nn.Embedding(3, 4)
        self.head = nn.Linear(4, 3, bias=False)
        self.head.weight = self.emb.weight
    def forward(self, i):
        x = self.emb(i)
        for layer in self.h:
            x = layer(x)
        return self.head(self.plain[0](x)) + self.fc(x)
m = Net()
m.h[0].proj.bias.requires_grad_(False)
opt = torch.optim.Adam([*m.parameters(), *m.plain[0].parameters()], 1e-3)
for step in range(6):
    if step == 3:
        m.fc = nn.Linear(4, 3)
        with torch.no_grad():
            m.fc.weight.fill_(7).requires_grad_(False)
        opt = torch.optim.Adam([*m.parameters(), *m.plain[0].parameters()], 1e-3)
    loss = m(torch.tensor([0, 1, 2])).square().mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
"""


@torches.both
class Typed(torches.Folder):
    def test_names(self):
        done = self.gradb([self.python, self.write("train.py", SCRIPT)], "set on-error continue",
                          "break Attn", "tbreak m.plain.0", "continue", "continue", "continue", "delete",
                          "run-to h.0.proj.weight", "finish h.1", "step", "finish h[0]", "info node", "until Attn",
                          "print h.0.proj.weight[0,0]", "print m.h[1].proj.weight.grad[0,0]", "print head.weight[0,0]",
                          "print head.weight.grad[0,0]", "print plain.0.bias[0]", "node m/head/weight",
                          "node twin.bias", "print proj.weight", "watch max > 1e9 on frozen",
                          "watch max > 1e9 on trainable", "watch max > 1e9 on Attn", "watch max > 1e9 on model",
                          "complete print h.0.proj.w", "step 2", "print twin.weight",
                          "print fc.weight[0]", "node fc.bias")
        for text in ("Breakpoint 1 at Attn (pending", "Breakpoint 1, step 1, forward, m/h/0/proj/linear",
                     "Breakpoint 1, step 1, forward, m/h/1/proj/linear", "breakpoint 2, step 1, forward, m/plain/0/linear",
                     "m/h/0/proj/weight is a parameter, which does not run: m/h/0/proj/linear reads it",
                     "step 2, forward, m/h/1/softmax (softmax)", "step 3, forward, m/h/0/softmax (softmax)",
                     "step 3, forward, m/h/1/proj/linear (linear)", "m/h/0/proj/weight:0[0, 0]",
                     "m/emb/weight:0[0, 0]",
                     "m/plain/0/bias:0[0]", "float32 (3, 4), tied to m/head/weight",
                     "m/fc/bias (Parameter), float32 (3,), tied to m/twin/bias",
                     "'proj.weight' could be 'm/h/0/proj/weight' or 'm/h/1/proj/weight'",
                     "on frozen: 1 node", "on trainable: 8 nodes", "print h.0.proj.weight.grad",
                     "m/fc/weight:0[0]", "[7. 7. 7. 7.]", "m/fc/bias (Parameter), float32 (3,)\n"):
            self.assertIn(text, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("[7. 7. 7. 7.]"), 1, done.stdout)  # not those of m.twin


if __name__ == "__main__":
    harness.main()
