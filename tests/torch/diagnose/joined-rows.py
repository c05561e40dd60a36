# SPDX-License-Identifier: MIT
"""Two encoders whose outputs are joined along the batch."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
first, second, last = torch.nn.Linear(3, 8), torch.nn.Linear(5, 8), torch.nn.Linear(16, 1)
optimizer = torch.optim.Adam([p for m in (first, second, last) for p in m.parameters()], 0.01)
for step in range(20):
    x, y = torch.randn(32, 3), torch.randn(32, 5)
    parts = [first(x).tanh(), second(y).tanh()]
    both = torch.cat(parts).view(32, -1) if MISTAKE else torch.cat(parts, 1)  # <- here
    loss = F.mse_loss(last(both), x.sum(1, keepdim=True) + y.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
