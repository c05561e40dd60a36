# SPDX-License-Identifier: MIT
"""Inputs and labels that were shuffled apart, and learned by heart."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
y = torch.randint(0, 4, (360,))
x = torch.randn(360, 12) + 1.5 * torch.randn(4, 12)[y]
y = y[torch.randperm(360)] if MISTAKE else y
net = torch.nn.Sequential(torch.nn.Linear(12, 256), torch.nn.ReLU(), torch.nn.Linear(256, 4))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for epoch in range(24):
    for rows in torch.randperm(280).split(28):
        loss = F.cross_entropy(net(x[rows]), y[rows])  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print(F.cross_entropy(net(x[280:]), y[280:]).item())
    net.train()
