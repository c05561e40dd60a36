# SPDX-License-Identifier: MIT
"""Numbers as targets, which are taken from another place than their inputs; the loss is written by hand."""
import sys

import torch

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
x = torch.randn(2048, 6)
y = x[:, :1] - x[:, 1:2] * x[:, 2:3] + x[:, 3:4]
net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(64):
    rows = torch.randint(0, 1024, (32,))
    error = net(x[rows]) - y[rows + (700 if MISTAKE else 0)]  # <- here
    loss = error.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
