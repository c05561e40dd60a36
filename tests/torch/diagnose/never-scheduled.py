# SPDX-License-Identifier: MIT
"""A scheduler is made, and nobody calls its step()."""
import sys

import torch

torch.manual_seed(0)
x = torch.randn(64, 4)
y = x[:, :2].sum(1, keepdim=True) + 0.1 * torch.randn(64, 1)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)  # <- here
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 16, shuffle=True)
for epoch in range(5):
    for inputs, targets in loader:
        optimizer.zero_grad()
        (net(inputs) - targets).square().mean().backward()
        optimizer.step()
    if "mistake" not in sys.argv:
        scheduler.step()
