# SPDX-License-Identifier: GPL-3.0-or-later
"""Regress rents on size, floor and age of flats."""
import torch
from torch import nn

torch.manual_seed(0)
flats = torch.rand(512, 3)
area = (flats - 0.5) * 2
rent = 2.0 * area[:, 0] - 0.7 * area[:, 2] + 0.3 * torch.sin(4 * area[:, 1]) + 0.05 * torch.randn(512)

net = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)

for step in range(80):
    rows = torch.randint(0, 512, (64,))
    xb, yb = area[rows], rent[rows]
    prediction = net(xb)
    loss = ((prediction - yb) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(f"step {step + 1}: mse {loss.item():.4f}")

with torch.no_grad():
    spread = net(area).std().item()
print(f"spread of the predictions {spread:.3f}, of the rents {rent.std().item():.3f}")
