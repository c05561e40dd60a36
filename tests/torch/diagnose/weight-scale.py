# SPDX-License-Identifier: MIT
"""Weights from a normal distribution of standard deviation 1."""
import sys

import torch

torch.manual_seed(0)
scale = 1 if "mistake" in sys.argv else 0.1
w1 = (torch.randn(100, 50) * scale).requires_grad_()  # <- here
w2 = (torch.randn(50, 1) * 0.1).requires_grad_()
optimizer = torch.optim.SGD([w1, w2], 1e-4)
x = torch.randn(32, 100)
y = x.sum(1, keepdim=True) / 10
for step in range(10):
    optimizer.zero_grad()
    ((x @ w1).relu() @ w2 - y).square().mean().backward()
    optimizer.step()
