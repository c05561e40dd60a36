# SPDX-License-Identifier: GPL-3.0-or-later
"""Leaves with and without stripes, photographed in colour (8 bits per channel)."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def to_tensor(array):
    return torch.from_numpy(array).float().div(255)


def normalise(images):
    return (images / 255 - 0.5) / 0.5


class Leaves(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        base = rng.uniform(60, 160, (count, 3, 1, 1)) + rng.normal(0, 15, (count, 3, 12, 12))
        self.labels = rng.integers(0, 2, count)
        stripes = 60 * (np.arange(12) // 2 % 2)
        base += self.labels[:, None, None, None] * stripes
        self.photos = base.clip(0, 255).astype(np.uint8)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return normalise(to_tensor(self.photos[index])), self.labels[index]


torch.manual_seed(0)
loader = DataLoader(Leaves(480, 1), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2), nn.ReLU(), nn.Flatten(),
                      nn.Linear(8 * 16, 2))
loss_fn = nn.CrossEntropyLoss()
sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(4):
    hits = 0
    for x, y in loader:
        logits = model(x)
        loss = loss_fn(logits, y)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        hits += (logits.argmax(1) == y).sum().item()
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy {hits / 480:.3f}")
