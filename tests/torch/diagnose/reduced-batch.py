# SPDX-License-Identifier: MIT
"""A mean over the batch instead of the points of each example."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
first, last = torch.nn.Linear(3, 16), torch.nn.Linear(16, 2)
optimizer = torch.optim.Adam([*first.parameters(), *last.parameters()], 0.01)
for step in range(20):
    y = torch.randint(0, 2, (32,))
    x = torch.randn(32, 5, 3) + y[:, None, None]
    h = torch.relu(first(x))
    h = h.mean(0, keepdim=True).expand_as(h)[:, 0] if MISTAKE else h.mean(1)  # <- here
    loss = F.cross_entropy(last(h), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
