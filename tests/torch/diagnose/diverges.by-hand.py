# SPDX-License-Identifier: MIT
"""Gradients by torch.autograd.grad and updates by hand, with the wrong sign: neither optimizer, module nor backward()."""
import sys

import torch

torch.manual_seed(0)
sign = 1 if "mistake" in sys.argv else -1
x = torch.randn(64, 3)
y = x @ torch.tensor([[1.0], [-2.0], [0.5]])
weights = [torch.randn(3, 1, requires_grad=True), torch.zeros(1, requires_grad=True)]
for step in range(60):
    loss = (x @ weights[0] + weights[1] - y).square().mean()
    gradients = torch.autograd.grad(loss, weights)  # <- here
    weights = [(one + sign * 0.1 * gradient).detach().requires_grad_() for one, gradient in zip(weights, gradients)]
