# SPDX-License-Identifier: MIT
"""The gradient of the input is wrong, which the first layer does not need."""
import sys

import torch


class Dense(torch.autograd.Function):
    """relu(x w), with its own backward."""

    @staticmethod
    def forward(ctx, x, w):
        z = x @ w
        ctx.save_for_backward(x, w, z)
        return z.clamp(min=0)

    @staticmethod
    def backward(ctx, grad):
        x, w, z = ctx.saved_tensors
        inner = grad * (z > 0)
        own = grad if "mistake" in sys.argv else inner
        return own @ w.t(), x.t() @ inner  # <- here


torch.manual_seed(0)
first = (torch.randn(4, 16) / 2).requires_grad_()
second = (torch.randn(16, 8) / 4).requires_grad_()
optimizer = torch.optim.SGD([first, second], 0.02)
for step in range(40):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    signed = Dense.apply(Dense.apply(x, first), second) @ torch.tensor([1.0, -1.0] * 4)
    (signed - x[:, 0] * x[:, 1]).square().mean().backward()
    optimizer.step()
