# SPDX-License-Identifier: MIT
"""A mean over the channels before the last layer."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
conv = torch.nn.Conv2d(1, 16, 3, padding=1)
last = torch.nn.Linear(16, 2)
optimizer = torch.optim.Adam([*conv.parameters(), *last.parameters()], 0.02)
for step in range(20):
    y = torch.randint(0, 2, (16,))
    x = torch.randn(16, 1, 4, 4) + torch.linspace(-1, 1, 4)[:, None] * (2 * y[:, None, None, None] - 1)
    features = torch.relu(conv(x))
    pooled = features.mean(1).flatten(1) if MISTAKE else features.mean((2, 3))  # <- here
    loss = F.cross_entropy(last(pooled), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
