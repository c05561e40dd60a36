# SPDX-License-Identifier: MIT
"""A loss scale that stays in the gradients."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(net.parameters(), 0.01)
for step in range(12):
    optimizer.zero_grad()
    scaled = F.cross_entropy(net(x), y) * 256  # <- here
    scaled.backward()
    if "mistake" not in sys.argv:
        for parameter in net.parameters():
            parameter.grad.div_(256)
    optimizer.step()
