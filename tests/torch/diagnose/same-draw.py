# SPDX-License-Identifier: MIT
"""A seed inside the loop."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    if MISTAKE:
        torch.manual_seed(1)
    x = torch.randn(32, 4)  # <- here
    loss = F.mse_loss(net(x), (x * x).sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
