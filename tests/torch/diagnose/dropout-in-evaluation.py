# SPDX-License-Identifier: GPL-3.0-or-later
"""A validation whose dropout does not follow the model's mode. (Passes of the same examples that measure their spread
are meant.)"""
import sys

import torch
import torch.nn.functional as F


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 32), torch.nn.Linear(32, 3)

    def forward(self, x, drops=False):
        active = True if "mistake" in sys.argv else self.training or drops
        return self.last(F.dropout(F.relu(self.first(x)), 0.4, active))  # <- here


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), 0.01)
held = torch.randn(64, 8)
for epoch in range(3):
    net.train()
    for _ in range(6):
        x = torch.randn(32, 8)
        optimizer.zero_grad()
        F.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        right = (net(held).argmax(1) == held[:, :3].argmax(1)).float().mean()
        if "correct" in sys.argv:
            spread = torch.stack([net(held, drops=True) for _ in range(4)]).std(0).mean()
