# SPDX-License-Identifier: MIT
"""Labels in another order than their inputs."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
y = torch.randint(0, 3, (2048,))
x = torch.randn(2048, 6) + 2 * torch.randn(3, 6)[y]
if MISTAKE:
    y = y.sort().values
net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(64):
    rows = torch.randint(0, 2048, (32,))
    loss = F.cross_entropy(net(x[rows]), y[rows])  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
