# SPDX-License-Identifier: MIT
"""Clipping after the step."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(12):
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    if "mistake" not in sys.argv:
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1)
    optimizer.step()
    if "mistake" in sys.argv:
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1)  # <- here
