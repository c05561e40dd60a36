# SPDX-License-Identifier: MIT
"""A cosine that is as long as the epochs, and is stepped for each batch."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
for epoch in range(4):
    for batch in range(8):
        x = torch.randn(16, 4)
        optimizer.zero_grad()
        (net(x) - x[:, :1] - 0.1 * torch.randn(16, 1)).square().mean().backward()
        optimizer.step()
        if "mistake" in sys.argv or batch == 7:
            scheduler.step()  # <- here
