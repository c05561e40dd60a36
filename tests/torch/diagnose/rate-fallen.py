# SPDX-License-Identifier: MIT
"""A scheduler that is stepped for each batch."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
from torch.utils.data import DataLoader, TensorDataset

net = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.1)
count = 0
for epoch in range(4):
    for data, labels in DataLoader(TensorDataset(x, y), 8):
        optimizer.zero_grad()
        F.cross_entropy(net(data), labels).backward()
        optimizer.step()
        count += 1
        if "mistake" in sys.argv or count % 8 == 0:
            schedule.step()  # <- here
