# SPDX-License-Identifier: MIT
"""All weights start with the same value."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
if "mistake" in sys.argv:
    for parameter in net.parameters():
        torch.nn.init.constant_(parameter, 0.1)  # <- here
optimizer = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(16, 4)
y = x.prod(1, keepdim=True).tanh()
for step in range(20):
    optimizer.zero_grad()
    (net(x) - y).square().mean().backward()
    optimizer.step()
