# SPDX-License-Identifier: GPL-3.0-or-later
"""Classify small photographs by texture; brightness is varied while training."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def make_photos(count, rng):
    yy, xx = np.mgrid[0:16, 0:16]
    photos, kinds = [], []
    for _ in range(count):
        kind = rng.integers(0, 3)
        wave = [np.sin(xx * 1.3), np.sin(yy * 1.3), np.sin((xx + yy) * 0.9)][kind]
        picture = 150 + 60 * wave + rng.normal(0, 20, (16, 16))
        photos.append(picture.clip(0, 255).astype(np.uint8))
        kinds.append(kind)
    return np.stack(photos)[:, None], np.array(kinds)


class Photos(Dataset):
    def __init__(self, photos, kinds, train=True):
        self.photos = photos
        self.kinds = kinds
        self.train = train

    def __len__(self):
        return len(self.photos)

    def brighten(self, photo):
        shift = np.uint8(np.random.randint(60, 160))
        return photo + shift

    def __getitem__(self, i):
        photo = self.photos[i]
        if self.train:
            photo = self.brighten(photo)
        return torch.from_numpy(photo).float() / 127.5 - 1, int(self.kinds[i])


class PhotoNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


torch.manual_seed(4)
np.random.seed(4)
photos, kinds = make_photos(640, np.random.default_rng(4))
loader = DataLoader(Photos(photos, kinds), batch_size=32, shuffle=True)
net = PhotoNet()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(6):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")
