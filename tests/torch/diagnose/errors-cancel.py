# SPDX-License-Identifier: MIT
"""The errors of a batch are averaged before the square."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(64, 4)
y = x.sum(1)
for step in range(10):
    error = net(x).squeeze(1) - y
    if "mistake" in sys.argv:
        loss = error.mean() ** 2  # <- here
    else:
        loss = (error ** 2).mean() + net.weight.mean() ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
