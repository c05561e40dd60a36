# SPDX-License-Identifier: MIT
"""step() in the loop and in a function that it calls."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Linear(6, 3)
optimizer = torch.optim.Adam(net.parameters(), 0.01)


def update(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for step in range(12):
    update(F.cross_entropy(net(x), y))
    if "mistake" in sys.argv:
        optimizer.step()  # <- here
