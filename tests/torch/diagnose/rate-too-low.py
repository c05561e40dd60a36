# SPDX-License-Identifier: MIT
"""A rate of 1e-7."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.Adam(net.parameters(), 1e-7 if "mistake" in sys.argv else 1e-2)
for step in range(40):
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()  # <- here
