# SPDX-License-Identifier: MIT
"""The gradients of four micro-batches are added, and the loss is not divided."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(12):
    for rows in torch.arange(64).split(16):
        loss = F.cross_entropy(net(x[rows]), y[rows])
        if "mistake" not in sys.argv:
            loss = loss / 4
        loss.backward()
    optimizer.step()  # <- here
    optimizer.zero_grad()
