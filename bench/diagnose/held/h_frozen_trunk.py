# SPDX-License-Identifier: GPL-3.0-or-later
"""Transfer: pre-train a trunk, freeze it (batch norm in eval mode), train a new head, then thaw the last block."""
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.block1 = nn.Sequential(nn.Linear(24, 48), nn.BatchNorm1d(48), nn.ReLU())
        self.block2 = nn.Sequential(nn.Linear(48, 48), nn.BatchNorm1d(48), nn.ReLU())
        self.head = nn.Linear(48, classes)
        self.frozen = []

    def train(self, mode=True):
        super().train(mode)
        for block in self.frozen:
            block.eval()
        return self

    def forward(self, x):
        return self.head(self.block2(self.block1(x)))


def fit(model, groups, x, y, steps):
    optimizer = torch.optim.Adam(groups)
    model.train()
    for step in range(steps):
        rows = torch.randint(0, len(x), (64,))
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(f"loss {loss.item():.4f}, accuracy {(model(x).argmax(1) == y).float().mean().item():.3f}")


torch.manual_seed(71)
x = torch.randn(800, 24)
hidden = torch.tanh(x @ torch.randn(24, 10) / 3)
model = Net(8)
fit(model, [{"params": model.parameters(), "lr": 5e-3}], x, (hidden @ torch.randn(10, 8)).argmax(1), 40)
y = (hidden @ torch.randn(10, 3)).argmax(1)
model.head = nn.Linear(48, 3)
model.frozen = [model.block1, model.block2]
for block in model.frozen:
    block.requires_grad_(False)
fit(model, [{"params": model.head.parameters(), "lr": 1e-2}], x, y, 30)
model.block2.requires_grad_(True)
model.frozen = [model.block1]
groups = [{"params": model.head.parameters(), "lr": 2e-3}, {"params": model.block2.parameters(), "lr": 5e-4}]
fit(model, groups, x, y, 30)
