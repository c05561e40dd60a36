# SPDX-License-Identifier: MIT
"""A loop freezes all linear layers."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Sequential(torch.nn.Conv1d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16, 3))
if "mistake" in sys.argv:
    for module in net:
        if isinstance(module, torch.nn.Linear):
            module.requires_grad_(False)  # <- here
optimizer = torch.optim.Adam([one for one in net.parameters() if one.requires_grad], 0.01)
for step in range(12):
    optimizer.zero_grad()
    F.cross_entropy(net(x.unsqueeze(1)), y).backward()
    optimizer.step()
