# SPDX-License-Identifier: MIT
"""Inputs of a tanh network that are not normalized."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.05)
x = torch.randn(64, 4)
y = x[:, :1]
if "mistake" in sys.argv:
    x = 2000 + 1000 * x
for step in range(10):
    optimizer.zero_grad()
    (net(x) - y).square().mean().backward()  # <- here
    optimizer.step()
