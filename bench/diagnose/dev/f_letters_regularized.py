# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognize 5x7 letters with a regularized network."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Letters(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(0)
        glyphs = (torch.rand(26, 35, generator=g) > 0.5).float()
        self.labels = torch.randint(0, 26, (n,), generator=g)
        flips = torch.rand(n, 35, generator=g) < 0.05
        self.images = (glyphs[self.labels] - flips.float()).abs()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


torch.manual_seed(0)
loader = DataLoader(Letters(640), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(35, 80), nn.ReLU(), nn.Linear(80, 26))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.5)
criterion = nn.CrossEntropyLoss()
for epoch in range(7):
    right, total = 0, 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        logits = model(images)
        loss = criterion(logits, labels)
        loss.backward()
        optimizer.step()
        right += (logits.argmax(1) == labels).sum().item()
        total += loss.item()
    print(f"epoch {epoch + 1}: loss {total / len(loader):.3f} accuracy {right / 640:.3f}")
