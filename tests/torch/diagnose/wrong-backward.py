# SPDX-License-Identifier: MIT
"""A hand-written square whose derivative lacks a factor; beside it, gradients that are another on purpose."""
import sys

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, given):
        x, = ctx.saved_tensors
        factor = 1 if "mistake" in sys.argv else 2
        return factor * given * x  # <- here


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (8 * x).round() / 8

    @staticmethod
    def backward(ctx, given):
        return given


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, given):
        return -given


square = Square.apply
torch.manual_seed(0)
net = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), 0.02)
x = torch.randn(32, 4)
y = x[:, :3].square()
for step in range(10):
    optimizer.zero_grad()
    made = Reverse.apply(Reverse.apply(Round.apply(square(net(x)))))
    (made - y).square().mean().backward()
    optimizer.step()
