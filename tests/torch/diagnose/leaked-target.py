# SPDX-License-Identifier: MIT
"""The label is a column of the table that the network gets."""
import sys

import torch

torch.manual_seed(0)
table = torch.randn(256, 6)
table[:, 4] = (table[:, 0] * table[:, 1] + 0.3 * torch.randn(256) > 0).float()
x = table if "mistake" in sys.argv else table[:, [0, 1, 2, 3, 5]]
labels = table[:, 4].long()
net = torch.nn.Sequential(torch.nn.Linear(x.shape[1], 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for rows in list(torch.randperm(256).split(32)) * 3:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(x[rows]), labels[rows]).backward()  # <- here
    optimizer.step()
