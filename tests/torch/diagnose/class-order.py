# SPDX-License-Identifier: MIT
"""Examples in the order of their classes."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
y = torch.arange(3).repeat_interleave(64)
x = torch.randn(192, 5) + torch.randn(3, 5)[y]
order = torch.arange(192) if MISTAKE else torch.randperm(192)
net = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(24):
    rows = order[step % 12 * 16:][:16]
    loss = F.cross_entropy(net(x[rows]), y[rows])  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
