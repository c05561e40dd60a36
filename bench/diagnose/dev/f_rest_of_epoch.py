# SPDX-License-Identifier: GPL-3.0-or-later
"""Binary tabular classification; gradients are accumulated over four batches of an epoch's eleven."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def dataset(rows=11 * 32):
    g = torch.Generator().manual_seed(21)
    x = torch.randn(rows, 12, generator=g)
    y = ((x[:, 0] * x[:, 1] + x[:, 2]) > 0).float()
    return TensorDataset(x, y)


def make_model():
    return nn.Sequential(nn.Linear(12, 48), nn.SiLU(), nn.Linear(48, 1), nn.Flatten(0))


def train(epochs, every):
    torch.manual_seed(9)
    model = make_model()
    loader = DataLoader(dataset(), batch_size=32, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    objective = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        model.train()
        optimizer.zero_grad()
        running = 0.0
        for i, (x, y) in enumerate(loader):
            loss = objective(model(x), y)
            (loss / every).backward()
            running += loss.item()
            if (i + 1) % every == 0:
                optimizer.step()
                optimizer.zero_grad()
        if epoch % 5 == 0:
            print(epoch, round(running / len(loader), 4))


train(epochs=25, every=4)
