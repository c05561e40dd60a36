# SPDX-License-Identifier: MIT
"""Nearly all labels are of one class, and nothing but that is learned."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(64):
    y = (torch.rand(64) < (0.04 if MISTAKE else 0.5)).long()
    x = torch.randn(64, 6) + 0.4 * y[:, None]
    loss = F.cross_entropy(net(x), y)  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
