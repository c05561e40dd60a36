# SPDX-License-Identifier: MIT
"""An evaluation before each round of training, and no train() after it."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 3))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(4):
    net.eval()  # <- here
    with torch.no_grad():
        print((net(x).argmax(1) == y).float().mean().item())
    if "mistake" not in sys.argv:
        net.train()
    for step in range(4):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
