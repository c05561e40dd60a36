# SPDX-License-Identifier: GPL-3.0-or-later
"""Sanity check: a residual network shall overfit one batch of eight examples with random labels."""
import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.gain = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + self.gain * self.conv2(F.relu(self.conv1(F.relu(x))))


torch.manual_seed(1)
model = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), Residual(16), Residual(16), nn.AdaptiveAvgPool2d(2),
                      nn.Flatten(), nn.Linear(64, 10))
# On purpose: the same eight examples at every step, labels drawn at random. The loss must go to 0.
images = torch.randn(8, 3, 16, 16)
labels = torch.randint(0, 10, (8,))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(60):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"step {step + 1}: loss {loss.item():.5f}")
