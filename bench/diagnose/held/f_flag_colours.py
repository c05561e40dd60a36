# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the quadrant of a picture (height, width, channels) in which red outshines blue."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 12, 3, stride=2, padding=1), nn.BatchNorm2d(12), nn.ReLU(),
            nn.Conv2d(12, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.AvgPool2d(3))
        self.classify = nn.Linear(16 * 4, 4)

    def forward(self, batch):
        batch = batch.reshape(-1, 3, 24, 24)
        feature = self.features(batch)
        return self.classify(feature.flatten(1))


def pictures(count, seed):
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        picture = rng.normal(0, 1.6, (24, 24, 3)).astype(np.float32)
        corner = int(rng.integers(0, 4))
        rows = slice(12 * (corner // 2), 12 * (corner // 2) + 12)
        columns = slice(12 * (corner % 2), 12 * (corner % 2) + 12)
        picture[rows, columns, 0] += 0.5
        picture[rows, columns, 2] -= 0.5
        out.append((picture, corner))
    return out


def main():
    torch.manual_seed(33)
    train = DataLoader(pictures(640, 0), batch_size=32, shuffle=True)
    held_out = DataLoader(pictures(200, 1), batch_size=100)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.01)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        net.train()
        for batch, corner in train:
            loss = criterion(net(batch), corner)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            right = sum((net(b).argmax(1) == c).sum().item() for b, c in held_out) / 200
        print(f"epoch {epoch}: loss {loss.item():.4f}, held-out accuracy {right:.3f}")


if __name__ == "__main__":
    main()
