# SPDX-License-Identifier: MIT
"""Gradients are clipped while they are still multiplied by the loss scale."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(12):
    x = torch.randn(16, 4)
    optimizer.zero_grad()
    loss = (net(x) - x[:, :2].sum(1, keepdim=True) - 0.1 * torch.randn(16, 1)).square().mean()
    (1024.0 * loss).backward()
    if "mistake" not in sys.argv:
        for weight in net.parameters():
            weight.grad /= 1024
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # <- here
    if "mistake" in sys.argv:
        for weight in net.parameters():
            weight.grad /= 1024
    optimizer.step()
