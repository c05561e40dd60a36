# SPDX-License-Identifier: MIT
"""A softmax before a loss that applies one."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(16, 4)
y = x[:, :3].argmax(1)
for step in range(20):
    optimizer.zero_grad()
    scores = net(x)
    if "mistake" in sys.argv:
        scores = scores.softmax(1)  # <- here
    F.cross_entropy(scores, y).backward()
    optimizer.step()
