# SPDX-License-Identifier: MIT
"""Two views of an example are pulled together, and nothing keeps examples apart."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(65):
    x = torch.randn(32, 8)
    a, b = net(x), net(x + 0.3 * torch.randn(32, 8))  # <- here
    loss = (a - b).square().sum(1).mean()
    if "mistake" not in sys.argv:
        loss = loss + (1 - a.std(0)).relu().mean() + (1 - b.std(0)).relu().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
