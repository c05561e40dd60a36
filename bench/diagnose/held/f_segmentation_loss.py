# SPDX-License-Identifier: GPL-3.0-or-later
"""Segment discs; the boundary loss counts only the pixels near an edge."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)


def scenes(n, size=16):
    axis = torch.arange(size).float()
    centre = torch.rand(n, 2) * size
    radius = torch.rand(n, 1, 1) * 5 - 0.6
    d = ((axis[None, :, None] - centre[:, :1, None]) ** 2 + (axis[None, None, :] - centre[:, 1:, None]) ** 2).sqrt()
    mask = (d < radius).float().unsqueeze(1)
    return mask + 0.3 * torch.randn(n, 1, size, size), mask


def boundary(mask):
    return (F.max_pool2d(mask, 3, 1, 1) - mask) > 0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(1, 12, 3, padding=1)
        self.up = nn.Conv2d(12, 1, 3, padding=1)

    def forward(self, x):
        return self.up(F.relu(self.down(x)))


def criterion(logits, mask):
    pixels = F.binary_cross_entropy_with_logits(logits, mask, reduction="none")
    near = boundary(mask).float()
    edges = (pixels * near).sum((1, 2, 3)) / near.sum((1, 2, 3))
    return pixels.mean() + 0.5 * edges.mean()


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for it in range(40):
    image, mask = scenes(3)
    loss = criterion(net(image), mask)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 5 == 4:
        print(f"iteration {it + 1} loss {loss.item():.4f}")
