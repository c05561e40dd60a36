# SPDX-License-Identifier: MIT
"""Weights in bfloat16 and a small rate."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
if "mistake" in sys.argv:
    net.to(torch.bfloat16)
optimizer = torch.optim.Adam(net.parameters(), 1e-4)
for step in range(16):
    optimizer.zero_grad()
    F.cross_entropy(net(x.to(net[0].weight.dtype)).float(), y).backward()
    optimizer.step()  # <- here
