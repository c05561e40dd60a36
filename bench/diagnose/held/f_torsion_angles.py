# SPDX-License-Identifier: GPL-3.0-or-later
"""Predict rotations; the loss is the angle between predicted and true unit vectors."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(51)


def angle_loss(a, b):
    cosine = (a * b).sum(-1).clamp(-1, 1)
    return torch.acos(cosine).mean()


class Pointer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 3))

    def forward(self, x):
        return F.normalize(x + self.layers(x), dim=-1)


spin = torch.linalg.qr(torch.randn(3, 3))[0]
model = Pointer()
nn.init.zeros_(model.layers[2].weight)
nn.init.zeros_(model.layers[2].bias)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(120):
    x = F.normalize(torch.randn(64, 3), dim=-1)
    # the lower half of the sphere is turned, the upper half stays where it is
    target = torch.where(x[:, 2:] < 0, x @ spin, x)
    loss = angle_loss(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} mean angle {loss.item():.4f}")
