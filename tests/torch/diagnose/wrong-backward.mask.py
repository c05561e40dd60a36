# SPDX-License-Identifier: MIT
"""A hand-written ReLU, in float32, whose mask is inverted; beside it, a rounding whose gradient is passed through."""
import sys

import torch


class Ramp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.float()
        ctx.save_for_backward(x)
        return torch.maximum(x, torch.zeros(x.shape))

    @staticmethod
    def backward(ctx, given):
        x, = ctx.saved_tensors
        return given * (x < 0 if "mistake" in sys.argv else x > 0)  # <- here


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (8 * x).round().clamp(-8, 8) / 8

    @staticmethod
    def backward(ctx, given):
        x, = ctx.saved_tensors
        return given * (x.abs() <= 1)


torch.manual_seed(0)
first, second = torch.nn.Linear(4, 16), torch.nn.Linear(16, 3)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], 0.1)
x = torch.randn(64, 4)
y = x[:, :3].argmax(1)
for step in range(10):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(second(Round.apply(Ramp.apply(first(x)))), y).backward()
    optimizer.step()
