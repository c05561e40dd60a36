# SPDX-License-Identifier: GPL-3.0-or-later
"""A residual tower of 24 blocks fits a function of 16 numbers."""
import torch
import torch.nn.functional as F
from torch import nn


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))

    def forward(self, x):
        return self.body(x)


class Tower(nn.Module):
    def __init__(self, inputs, width, depth):
        super().__init__()
        self.stem = nn.Linear(inputs, width)
        self.blocks = nn.ModuleList(ResidualBlock(width) for _ in range(depth))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


torch.manual_seed(81)
true = torch.randn(16, 1) * 0.5
model = Tower(16, 32, 24)
optimizer = torch.optim.SGD(model.parameters(), lr=3e-3, momentum=0.9)
total = 0.0
for step in range(1, 101):
    x = torch.randn(64, 16)
    y = x @ true + torch.sin(2 * x[:, :1])
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    if step % 25 == 0:
        print(f"{step:4d}: {total / 25:.4f}")
        total = 0.0
