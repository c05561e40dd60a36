# SPDX-License-Identifier: MIT
"""The last layer has a ReLU, and its bias keeps it at 0."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2), torch.nn.ReLU())  # <- here
if "mistake" in sys.argv:
    torch.nn.init.constant_(net[2].bias, -6.0)
else:
    torch.nn.init.constant_(net[2].bias, 1.0)
optimizer = torch.optim.SGD(net.parameters(), 0.05)
for step in range(12):
    x = torch.rand(32, 4)
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), x[:, :2] + x[:, 2:] + 0.1 * torch.randn(32, 2))  # the output is dead
    loss.backward()
    optimizer.step()
