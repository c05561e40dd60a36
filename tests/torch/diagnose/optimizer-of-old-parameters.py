# SPDX-License-Identifier: MIT
"""The module is copied after the optimizer was made."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
import copy

net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
if "mistake" not in sys.argv:
    net = copy.deepcopy(net)
optimizer = torch.optim.Adam(net.parameters(), 0.01)  # <- here
if "mistake" in sys.argv:
    net = copy.deepcopy(net)
for step in range(12):
    net.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()
