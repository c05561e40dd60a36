# SPDX-License-Identifier: GPL-3.0-or-later
"""Fine-tune a pretrained classifier for four new classes."""
import torch
from torch import nn

torch.manual_seed(0)


class Small(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.fc = nn.Linear(8 * 4 * 4, classes)

    def forward(self, x):
        return self.fc(self.features(x))


def blobs(n, classes, seed):
    g = torch.Generator().manual_seed(seed)
    centers = torch.randn(classes, 1, 8, 8, generator=g)
    labels = torch.randint(0, classes, (n,), generator=g)
    return centers[labels] + 0.8 * torch.randn(n, 1, 8, 8, generator=g), labels


def fit(model, optimizer, x, y, steps, name):
    for step in range(steps):
        rows = torch.randint(0, len(x), (32,))
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    accuracy = (model(x).argmax(1) == y).float().mean().item()
    print(f"{name}: loss {loss.item():.3f} accuracy {accuracy:.2f}")


model = Small(10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = blobs(400, 10, 1)
for round_ in range(3):
    fit(model, optimizer, x, y, 15, "pretraining")

for p in model.features.parameters():
    p.requires_grad = False
model.fc = nn.Linear(8 * 4 * 4, 4)
x, y = blobs(400, 4, 2)
for round_ in range(3):
    fit(model, optimizer, x, y, 15, "fine-tuning")
