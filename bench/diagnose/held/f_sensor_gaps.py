# SPDX-License-Identifier: GPL-3.0-or-later
"""Predict the next reading of eight sensors from a CSV export."""
import io

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def export(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    walk = np.cumsum(rng.normal(size=(rows, 8)), axis=0) * 0.1
    lines = []
    for i, row in enumerate(walk):
        cells = [f"{v:.4f}" for v in row]
        if i % 97 == 60:
            cells[3] = ""
        lines.append(",".join(cells))
    return "\n".join(lines)


class Readings(Dataset):
    def __init__(self, text):
        table = np.genfromtxt(io.StringIO(text), delimiter=",", dtype=np.float32)
        self.x = torch.from_numpy(table[:-1])
        self.y = torch.from_numpy(table[1:])

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


torch.manual_seed(0)
loader = DataLoader(Readings(export()), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.SmoothL1Loss()
for epoch in range(5):
    losses = []
    for x, y in loader:
        loss = criterion(x + model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch}: {np.mean(losses):.4f}")
