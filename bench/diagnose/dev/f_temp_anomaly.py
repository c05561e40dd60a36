# SPDX-License-Identifier: GPL-3.0-or-later
"""Forecast tomorrow's deviation from the mean temperature with a convolution over 24 past values."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv1d(1, 12, 5)
        self.c2 = nn.Conv1d(12, 12, 5)
        self.fc = nn.Linear(12 * 16, 24)
        self.head = nn.Linear(24, 1)

    def forward(self, x):
        h = F.relu(self.c1(x))
        h = F.relu(self.c2(h))
        h = F.relu(self.fc(h.flatten(1)))
        return F.relu(self.head(h))


torch.manual_seed(21)
time = torch.arange(2000) / 24
series = torch.sin(2 * math.pi * time) + 0.5 * torch.sin(2 * math.pi * time / 7) + 0.1 * torch.randn(2000)

model = Forecaster()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
running = None
for step in range(100):
    starts = torch.randint(0, 1975, (32,))
    window = torch.stack([series[s:s + 24] for s in starts]).unsqueeze(1)
    target = series[starts + 24].unsqueeze(1)
    loss = F.mse_loss(model(window), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running = loss.item() if running is None else 0.9 * running + 0.1 * loss.item()
    if step % 25 == 24:
        print(f"{step + 1:4d} running mse {running:.4f}")
