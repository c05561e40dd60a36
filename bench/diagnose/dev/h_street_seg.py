# SPDX-License-Identifier: GPL-3.0-or-later
"""Segment discs and squares with a small U-Net; the border of the pictures is not labelled (255)."""
import torch
import torch.nn.functional as F
from torch import nn


def double(n_in, n_out):
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, 3, padding=1, bias=False), nn.GroupNorm(4, n_out), nn.ReLU(inplace=True),
        nn.Conv2d(n_out, n_out, 3, padding=1, bias=False), nn.GroupNorm(4, n_out), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.down1, self.down2, self.bottom = double(1, 8), double(8, 16), double(16, 32)
        self.up2 = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.dec2 = double(32, 16)
        self.up1 = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.dec1 = double(16, 8)
        self.head = nn.Conv2d(8, classes, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.bottom(F.max_pool2d(b, 2))
        b = self.dec2(torch.cat([self.up2(c), b], dim=1))
        a = self.dec1(torch.cat([self.up1(b), a], dim=1))
        return self.head(a)


def scenes(count):
    grid = torch.stack(torch.meshgrid(torch.arange(32.), torch.arange(32.), indexing="ij"))
    masks = torch.zeros(count, 32, 32, dtype=torch.long)
    for mask in masks:
        p, q = torch.rand(2, 2) * 20 + 6
        square = (grid - p.view(2, 1, 1)).abs().amax(0) < 5
        disc = (grid - q.view(2, 1, 1)).square().sum(0) < 25
        mask[square] = 1
        mask[disc] = 2
    images = masks.unsqueeze(1).float() - 1 + 0.5 * torch.randn(count, 1, 32, 32)
    masks[:, :2] = masks[:, -2:] = 255
    masks[:, :, :2] = masks[:, :, -2:] = 255
    return images, masks


torch.manual_seed(6)
model = UNet(3)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(60):
    images, masks = scenes(8)
    logits = model(images)
    loss = F.cross_entropy(logits, masks, ignore_index=255, weight=torch.tensor([0.5, 1.0, 1.0]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 15 == 14:
        known = masks != 255
        right = (logits.argmax(1) == masks)[known].float().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, pixels right {right:.3f}")
