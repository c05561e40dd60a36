# SPDX-License-Identifier: MIT
"""Counts that are not scaled enter a layer with a bounded activation: each unit is at one of its ends."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.Hardtanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    x = torch.randint(0, 90, (64, 12)).float()
    y = x[:, :3].mean(1, keepdim=True) / 90 + 0.1 * torch.randn(64, 1)
    loss = F.mse_loss(net(x if "mistake" in sys.argv else x / 90), y)  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
