# SPDX-License-Identifier: GPL-3.0-or-later
"""Network with a thresholded gate that works in place to save memory."""
import torch
from torch import nn


class Gate(torch.autograd.Function):
    """x where x > 0.2, and 0.2 elsewhere."""

    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        y[y < 0.2] = 0.2
        ctx.passed = y < 0.2
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad.masked_fill(ctx.passed, 0.0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(5, 32), nn.Linear(32, 32), nn.Linear(32, 1)

    def forward(self, x):
        return self.c(Gate.apply(self.b(Gate.apply(self.a(x)))))


torch.manual_seed(77)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(100):
    x = torch.randn(64, 5)
    y = (x[:, :1] - x[:, 1:2]).abs() + x[:, 2:3].clamp(min=0)
    loss = nn.functional.mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(f"step {step + 1} loss {loss.item():.4f}")
