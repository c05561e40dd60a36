# SPDX-License-Identifier: MIT
"""A constant column that is standardised."""
import sys

import torch

torch.manual_seed(0)
table = torch.randn(64, 5)
table[:, 3] = 2
deviation = table.std(0)  # <- here
x = (table - table.mean(0)) / (deviation if "mistake" in sys.argv else deviation + 1e-6)
y = table[:, :1] * 2
net = torch.nn.Linear(5, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(10):
    optimizer.zero_grad()
    rows = torch.randperm(64)[:32]
    torch.nn.functional.mse_loss(net(x[rows]), y[rows]).backward()
    optimizer.step()
