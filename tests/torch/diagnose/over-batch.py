# SPDX-License-Identifier: MIT
"""A recurrence that takes the batch for time."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
gru, last = torch.nn.GRU(3, 8, batch_first=not MISTAKE), torch.nn.Linear(8, 1)
optimizer = torch.optim.Adam([*gru.parameters(), *last.parameters()], 0.01)
for step in range(20):
    x = torch.randn(32, 6, 3)
    states, _ = gru(x)  # <- here
    loss = F.mse_loss(last(states[:, -1]), x.sum((1, 2)).unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
