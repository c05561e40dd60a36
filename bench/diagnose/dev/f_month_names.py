# SPDX-License-Identifier: GPL-3.0-or-later
"""Guess the month from five weather readings of a day."""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(64)
model = nn.Sequential(
    nn.Linear(5, 24),
    nn.ReLU(),
    nn.Linear(24, 12),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(30):
    month = torch.randint(1, 13, (48,))
    season = 2 * math.pi * month / 12
    day = torch.stack([season.sin(), season.cos(), (2 * season).sin(), season.cos() ** 2, season.sin() ** 2], dim=1)
    day = day + 0.1 * torch.randn(48, 5)
    loss = F.cross_entropy(model(day), month)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step + 1}: loss {loss.item():.4f}")
