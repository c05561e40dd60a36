# SPDX-License-Identifier: MIT
"""Adam with a learning rate of 1."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(128, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
net = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh(),
                          torch.nn.Linear(32, 2))
rate = 1.0 if "mistake" in sys.argv else 0.01
optimizer = torch.optim.Adam(net.parameters(), rate)  # <- here
for step in range(70):
    rows = torch.randperm(128)[:32]
    optimizer.zero_grad()
    F.cross_entropy(net(x[rows]), y[rows]).backward()
    optimizer.step()
