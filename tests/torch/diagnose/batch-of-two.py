# SPDX-License-Identifier: MIT
"""Batches of two examples are normalized: each is -1 or 1, whatever it was."""
import sys

import torch

torch.manual_seed(0)
norm = torch.nn.BatchNorm1d(16)  # <- here
net = torch.nn.Sequential(torch.nn.Linear(4, 16), norm, torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(12):
    x = torch.randn(2 if "mistake" in sys.argv else 32, 4)
    optimizer.zero_grad()
    (net(x) - x[:, :2].sum(1, keepdim=True) - 0.1 * torch.randn(len(x), 1)).square().mean().backward()
    optimizer.step()
