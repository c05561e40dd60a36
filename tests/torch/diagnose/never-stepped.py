# SPDX-License-Identifier: MIT
"""The scheduler steps, and the optimizer does not."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.05)  # <- here
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 20)
for step in range(40):
    x = torch.randn(32, 4)
    optimizer.zero_grad()
    (net(x) - x.sum(1, keepdim=True)).square().mean().backward()
    if "mistake" not in sys.argv:
        optimizer.step()
    scheduler.step()
