# SPDX-License-Identifier: MIT
"""A weight decay of 1."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, weight_decay=1 if "mistake" in sys.argv else 1e-3)
for step in range(20):
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()  # <- here
