# SPDX-License-Identifier: GPL-3.0-or-later
"""Defects on a production line: one part in ten is bad."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(94)
y = (torch.rand(2000) < 0.1).float()
x = torch.randn(2000, 10) + 0.7 * y.unsqueeze(1)
positives, negatives = y.sum(), (1 - y).sum()
pos_weight = positives / negatives

model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(150):
    rows = torch.randint(0, 2000, (100,))
    logit = model(x[rows]).squeeze(1)
    loss = F.binary_cross_entropy_with_logits(logit, y[rows], pos_weight=pos_weight)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        with torch.no_grad():
            flagged = model(x).squeeze(1) > 0
        recall = (flagged & (y == 1)).sum() / positives
        false = (flagged & (y == 0)).sum() / negatives
        print(f"step {step + 1}: loss {loss.item():.4f}, found {recall.item():.3f}, false alarms {false.item():.3f}")
