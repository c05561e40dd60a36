# SPDX-License-Identifier: GPL-3.0-or-later
"""Regress a smooth function with a configurable stack of layers."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Stack(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.inner = [nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]
        self.head = nn.Linear(sizes[-1], 1)

    def forward(self, x):
        for layer in self.inner:
            x = torch.tanh(layer(x))
        return self.head(x)


torch.manual_seed(7)
x = torch.rand(400, 2) * 4 - 2
y = torch.sin(3 * x[:, :1]) * torch.cos(2 * x[:, 1:])
model = Stack([2, 24, 24])
print("parameters:", sum(p.numel() for p in model.parameters()))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for step in range(80):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
