# SPDX-License-Identifier: MIT
"""Two tasks: the loss of the first one goes backward alone, and then again as a part of the sum."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
trunk = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU())
first, second = torch.nn.Linear(16, 3), torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD([*trunk.parameters(), *first.parameters(), *second.parameters()], 0.05)
x = torch.randn(64, 6)
for step in range(10):
    hidden = trunk(x)
    classes = F.cross_entropy(first(hidden), x[:, :3].argmax(1))
    values = F.mse_loss(second(hidden), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    classes.backward(retain_graph=True)  # <- here
    (classes + values if "mistake" in sys.argv else values).backward()
    optimizer.step()
