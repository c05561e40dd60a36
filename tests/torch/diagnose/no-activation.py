# SPDX-License-Identifier: MIT
"""Two linear layers with nothing between them."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
first, second, last = torch.nn.Linear(4, 16), torch.nn.Linear(16, 16), torch.nn.Linear(16, 1)
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters(), *last.parameters()], 0.01)
for step in range(20):
    x = torch.randn(32, 4)
    h = first(x)
    h = torch.relu(second(h if MISTAKE else torch.relu(h)))  # <- here
    loss = F.mse_loss(last(h), (x * x).sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
