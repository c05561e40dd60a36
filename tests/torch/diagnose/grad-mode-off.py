# SPDX-License-Identifier: MIT
"""Gradients are turned off for an evaluation, and not turned on again."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.05)
x = torch.randn(64, 4)
y = x.sum(1, keepdim=True)
for step in range(10):
    optimizer.zero_grad()
    (net(x) - y).square().mean().backward()
    optimizer.step()
    if step == 6:
        torch.set_grad_enabled(False)  # <- here
        print((net(x) - y).abs().mean().item())
        if "mistake" not in sys.argv:
            torch.set_grad_enabled(True)
