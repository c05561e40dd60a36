# SPDX-License-Identifier: GPL-3.0-or-later
"""Three quantiles of the demand for energy by hour and temperature."""
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(5)
hours = rng.uniform(0, 24, 4000)
temp = rng.normal(12, 6, 4000)
demand = 3 + np.sin(hours / 24 * 2 * np.pi) + 0.05 * (temp - 12) ** 2 / 6 + rng.gumbel(0, 0.3, 4000)
X = np.c_[np.sin(hours / 24 * 2 * np.pi), np.cos(hours / 24 * 2 * np.pi), (temp - 12) / 6].astype(np.float32)
y = demand.astype(np.float32)
X, y = torch.from_numpy(X), torch.from_numpy(y)

QS = (0.1, 0.5, 0.9)

class QuantileLoss(nn.Module):
    def __init__(self, quantiles):
        super().__init__()
        self.quantiles = quantiles

    def forward(self, preds, target):
        total = 0.0
        for i, q in enumerate(self.quantiles):
            diff = target - preds[:, i]
            above = diff > 0
            total = total + (q * diff[above].sum() + (1 - q) * diff[~above].sum()) / len(target)
        return total

model = nn.Sequential(nn.Linear(3, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, len(QS)))
criterion = QuantileLoss(QS)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(4):
    order = torch.randperm(len(X))
    for chunk in order.split(128):
        loss = criterion(model(X[chunk]), y[chunk])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", float(loss))
