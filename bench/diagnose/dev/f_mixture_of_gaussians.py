# SPDX-License-Identifier: GPL-3.0-or-later
"""Mixture density network: two answers for one question."""
import math

import torch
import torch.nn as nn


class MixtureNet(nn.Module):
    def __init__(self, parts=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 32), nn.Tanh())
        self.weight = nn.Linear(32, parts)
        self.mean = nn.Linear(32, parts)
        self.spread = nn.Linear(32, parts)

    def forward(self, x):
        h = self.body(x)
        return torch.softmax(self.weight(h), -1), self.mean(h), torch.exp(self.spread(h))


def nll(weight, mean, spread, y):
    density = torch.exp(-0.5 * ((y - mean) / spread) ** 2) / (spread * math.sqrt(2 * math.pi))
    return -torch.log((weight * density).sum(-1)).mean()


torch.manual_seed(25)
x = torch.rand(800, 1) * 2 - 1
side = torch.where(torch.rand(800, 1) < 0.5, 1.0, -1.0)
y = 6 * side * (1 + x ** 2) + 0.2 * torch.randn(800, 1)
y[::200] = 25.0
model = MixtureNet()
opt = torch.optim.Adam(model.parameters(), lr=0.02)
for step in range(100):
    rows = torch.randint(0, 800, (100,))
    loss = nll(*model(x[rows]), y[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        print(f"step {step:3d} nll {loss.item():.3f}")
