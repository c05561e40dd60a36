# SPDX-License-Identifier: MIT
"""zero_grad() before each micro-batch."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(12):
    for part in range(4):
        if "mistake" in sys.argv or part == 0:
            optimizer.zero_grad()  # <- here
        rows = slice(16 * part, 16 * part + 16)
        (F.cross_entropy(net(x[rows]), y[rows]) / 4).backward()
    optimizer.step()
