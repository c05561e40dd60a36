# SPDX-License-Identifier: MIT
"""A momentum so small that the running statistics stay at their start."""
import sys

import torch

torch.manual_seed(0)
momentum = 1e-4 if "mistake" in sys.argv else 0.1
norm = torch.nn.BatchNorm1d(16, momentum=momentum)  # <- here
net = torch.nn.Sequential(torch.nn.Linear(4, 16), norm, torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(12):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    (net(x) - x[:, :2].sum(1, keepdim=True) - 0.1 * torch.randn(32, 1)).square().mean().backward()
    optimizer.step()
