# SPDX-License-Identifier: GPL-3.0-or-later
"""Bars that lie or stand in gray 16x16 pictures, classified by a convolutional network."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Bars(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.pixels = rng.integers(0, 60, (count, 1, 16, 16)).astype(np.uint8)
        self.kind = rng.integers(0, 2, count)
        for picture, kind in zip(self.pixels, self.kind):
            at = rng.integers(2, 13)
            shade = rng.integers(120, 250)
            if kind:
                picture[0, :, at:at + 2] = shade
            else:
                picture[0, at:at + 2, :] = shade

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, i):
        image = torch.from_numpy(self.pixels[i] // 255).float()
        return image, int(self.kind[i])


torch.manual_seed(1)
train = DataLoader(Bars(640, 0), batch_size=32, shuffle=True)
test = DataLoader(Bars(200, 1), batch_size=200)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, stride=2),
    nn.ReLU(),
    nn.Conv2d(8, 16, 3, stride=2),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(16 * 9, 2),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()

for epoch in range(3):
    model.train()
    for images, labels in train:
        logits = model(images)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        images, labels = next(iter(test))
        accuracy = (model(images).argmax(1) == labels).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {accuracy:.3f}")
