# SPDX-License-Identifier: MIT
"""Dropout that keeps a tenth."""
import sys

import torch

torch.manual_seed(0)
rate = 0.9 if "mistake" in sys.argv else 0.1
net = torch.nn.Sequential(
    torch.nn.Linear(4, 32),
    torch.nn.ReLU(),
    torch.nn.Dropout(rate),  # <- here
    torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.02)
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)
for step in range(10):
    optimizer.zero_grad()
    (net(x) - y).square().mean().backward()
    optimizer.step()
