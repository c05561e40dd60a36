# SPDX-License-Identifier: MIT
"""All weights start at the same number, and dropout alone tells the units apart."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(32, 3))
if "mistake" in sys.argv:
    for weight in (net[0].weight, net[3].weight):
        torch.nn.init.constant_(weight, 0.05)  # <- here
optimizer = torch.optim.SGD(net.parameters(), 0.05)
for step in range(12):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
    optimizer.step()
