# SPDX-License-Identifier: GPL-3.0-or-later
"""Domain-adversarial training: a gradient reversal, a rounding with a straight-through gradient, a clamp hook."""
import torch
import torch.nn.functional as F
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.scale * g, None


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * 8).round() / 8

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() <= 2)


torch.manual_seed(71)
trunk = nn.Sequential(nn.Linear(10, 32), nn.Tanh())
label, domain = nn.Linear(32, 3), nn.Linear(32, 2)
params = [*trunk.parameters(), *label.parameters(), *domain.parameters()]
for p in params:
    p.register_hook(lambda g: g.clamp(-1, 1))
opt = torch.optim.Adam(params, lr=3e-3)
w = torch.randn(8, 3)
for step in range(200):
    d = torch.randint(0, 2, (64,))
    x = torch.randn(64, 10)
    y = (x[:, :8] @ w).argmax(1)
    x[:, 9] += d * 2.0
    h = Round.apply(trunk(x))
    loss = F.cross_entropy(label(h), y) + F.cross_entropy(domain(Reverse.apply(h, 0.3)), d)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 40 == 0:
        print(step, loss.item())
