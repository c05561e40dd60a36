# SPDX-License-Identifier: MIT
"""zero_grad() of the module between backward() and step()."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(12):
    if "mistake" not in sys.argv:
        optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    if "mistake" in sys.argv:
        net.zero_grad()  # <- here
    optimizer.step()
