# SPDX-License-Identifier: MIT
"""The loss is a new tensor."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(12):
    loss = F.cross_entropy(net(x), y)
    if "mistake" in sys.argv:
        loss = torch.tensor(float(loss), requires_grad=True)  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
