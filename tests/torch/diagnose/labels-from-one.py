# SPDX-License-Identifier: MIT
"""Labels that count from 1, and one output more."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
centres = torch.randn(4, 6)
net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4 + MISTAKE))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    y = torch.randint(0, 4, (32,))
    x = torch.randn(32, 6) + centres[y]
    loss = F.cross_entropy(net(x), y + MISTAKE)  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
