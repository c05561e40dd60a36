# SPDX-License-Identifier: GPL-3.0-or-later
"""Train on few examples with accumulated gradients; one pass over the loader is one epoch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def run(accumulate=16, batch_size=8, epochs=12):
    torch.manual_seed(58)
    x = torch.randn(96, 15)
    y = (x[:, 0] > x[:, 1]).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
    model = nn.Sequential(nn.Linear(15, 32), nn.GELU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for epoch in range(epochs):
        optimizer.zero_grad()
        total = 0.0
        for index, (xb, yb) in enumerate(loader, start=1):
            loss = nn.functional.cross_entropy(model(xb), yb)
            (loss / accumulate).backward()
            total += loss.item()
            if index % accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()
        print(f"epoch {epoch} loss {total / len(loader):.4f}")


run()
