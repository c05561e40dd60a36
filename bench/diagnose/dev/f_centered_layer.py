# SPDX-License-Identifier: GPL-3.0-or-later
"""Residual network of vectors with a normalization layer whose backward is written by hand."""
import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Center(Function):
    """Subtract the mean of the row and divide by its standard deviation."""

    @staticmethod
    def forward(ctx, x, eps):
        centered = x - x.mean(-1, keepdim=True)
        rstd = torch.rsqrt(centered.pow(2).mean(-1, keepdim=True) + eps)
        y = centered * rstd
        ctx.save_for_backward(y, rstd)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        y, rstd = ctx.saved_tensors
        projection = (grad * y).sum(-1, keepdim=True)
        return rstd * (grad - grad.mean(-1, keepdim=True) - y * projection), None


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        return Center.apply(x + self.lin2(torch.relu(self.lin1(x))), 1e-5)


torch.manual_seed(39)
net = nn.Sequential(nn.Linear(12, 32), Block(32), Block(32), Block(32), nn.Linear(32, 1))
x = torch.randn(500, 12)
y = (x[:, :1] * x[:, 1:2]).abs() - x[:, 2:3]
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(80):
    rows = torch.randint(0, 500, (64,))
    loss = nn.functional.mse_loss(net(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 16 == 0:
        print(step, f"{loss.item():.4f}")
