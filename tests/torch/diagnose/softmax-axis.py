# SPDX-License-Identifier: MIT
"""Attention weights that add up to 1 over the batch."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
score, last = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam([*score.parameters(), *last.parameters()], 0.01)
for step in range(20):
    x = torch.randn(32, 6, 4)
    weights = torch.softmax(score(x), dim=0 if MISTAKE else 1)  # <- here
    output = last((weights * x).sum(1)).squeeze(1)
    loss = F.binary_cross_entropy_with_logits(output, (x[..., 0].max(1).values > 1).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
