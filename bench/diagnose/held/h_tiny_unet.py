# SPDX-License-Identifier: GPL-3.0-or-later
"""Segment rare small lesions: U-shaped network, Dice loss and a weight for the rare class."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def double(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.GroupNorm(4, cout), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1, self.enc2 = double(1, 8), double(8, 16)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.dec = double(16, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(F.max_pool2d(a, 2))
        return self.out(self.dec(torch.cat([a, self.up(b)], 1)))


def scans(n):
    mask = torch.zeros(n, 1, 16, 16)
    for i in range(n):
        if torch.rand(1) < 0.8:
            r, c = torch.randint(0, 13, (2,)).tolist()
            mask[i, 0, r:r + 3, c:c + 3] = 1
    return 1.2 * mask + 0.5 * torch.randn(n, 1, 16, 16), mask


def dice(p, t, smooth=1.0):
    inter = (p * t).sum((1, 2, 3))
    return 1 - (2 * inter + smooth) / (p.sum((1, 2, 3)) + t.sum((1, 2, 3)) + smooth)


torch.manual_seed(111)
model = UNet()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
weight = torch.tensor(10.0)
for step in range(60):
    x, t = scans(16)
    logits = model(x)
    overlap = dice(torch.sigmoid(logits), t).mean()
    loss = F.binary_cross_entropy_with_logits(logits, t, pos_weight=weight) + overlap
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"step {step + 1} loss {loss.item():.4f} dice {1 - overlap.item():.3f}")
