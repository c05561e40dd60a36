# SPDX-License-Identifier: MIT
"""Outputs (N, 1) and targets (N)."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    x = torch.randn(32, 4)
    y = x[:, 0] if MISTAKE else x[:, :1]
    loss = ((net(x) - y) ** 2).mean()  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
