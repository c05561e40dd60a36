# SPDX-License-Identifier: MIT
"""An evaluation without eval()."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 3))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for epoch in range(3):
    net.train()
    for rows in torch.randperm(48).split(16):
        optimizer.zero_grad()
        F.cross_entropy(net(x[rows]), y[rows]).backward()
        optimizer.step()
    if "mistake" not in sys.argv:
        net.eval()
    with torch.no_grad():
        right = (net(x[48:]).argmax(1) == y[48:]).float().mean()  # <- here
