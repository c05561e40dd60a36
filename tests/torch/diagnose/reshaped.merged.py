# SPDX-License-Identifier: MIT
"""Examples that stand last are flattened as if they stood first."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
conv, last = torch.nn.Conv2d(1, 8, 3), torch.nn.Linear(72, 2)
optimizer = torch.optim.Adam([*conv.parameters(), *last.parameters()], 0.01)
for step in range(20):
    y = torch.randint(0, 2, (32,))
    x = torch.randn(32, 1, 5, 5) + torch.linspace(-1, 1, 5) * (2 * y[:, None, None, None] - 1)
    h = torch.relu(conv(x))
    h = h.permute(1, 2, 3, 0).reshape(32, -1) if MISTAKE else h.reshape(32, -1)  # <- here
    loss = F.cross_entropy(last(h), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
