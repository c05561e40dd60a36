# SPDX-License-Identifier: MIT
"""A warm-up by a division of integers."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: step // 100 if "mistake" in sys.argv else min(1, step / 10))
for step in range(24):
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()
    schedule.step()  # <- here
