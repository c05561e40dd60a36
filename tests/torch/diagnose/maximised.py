# SPDX-License-Identifier: MIT
"""A mean squared error with a minus."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.01)
for step in range(20):
    x = torch.randn(32, 4)
    error = F.mse_loss(net(x), x[:, :1])  # <- here
    loss = -error if MISTAKE else error
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
