# SPDX-License-Identifier: MIT
"""A variance as E[x^2] - E[x]^2, of readings near 100,000."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
net = torch.nn.Linear(16, 1)
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    x = torch.randn(32, 16)
    y = x[:, :1]
    if "mistake" in sys.argv:
        x = x + 1e5
    mean = x.mean(1, keepdim=True)
    variance = (x * x).mean(1, keepdim=True) - mean * mean  # <- here
    loss = F.mse_loss(net((x - mean) / (variance.clamp(min=0) + 1e-3).sqrt()), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
