# SPDX-License-Identifier: MIT
"""zero_grad() of an optimizer that never steps."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
other = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)
for step in range(12):
    (other if "mistake" in sys.argv else optimizer).zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()  # <- here
