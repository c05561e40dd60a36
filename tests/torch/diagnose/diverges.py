# SPDX-License-Identifier: MIT
"""A rate at which the loss grows in each step."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Linear(6, 1)
optimizer = torch.optim.SGD(net.parameters(), 2.0 if "mistake" in sys.argv else 0.05)
for step in range(30):
    optimizer.zero_grad()
    F.mse_loss(net(x).squeeze(1), x.sum(1) + 1).backward()
    optimizer.step()  # <- here
