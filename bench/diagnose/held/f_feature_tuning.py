# SPDX-License-Identifier: GPL-3.0-or-later
"""Train a metric for shapes: the feature extractor runs in inference style for speed."""
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(73)


class Extractor(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, stride=2)
        self.conv2 = nn.Conv2d(8, 4, 3, stride=2)

    @torch.no_grad()
    def forward(self, x):
        return self.conv2(F.relu(self.conv1(x))).flatten(1)


class Metric(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Extractor()
        self.project = nn.Linear(16, 2)

    def forward(self, x):
        return F.normalize(self.project(self.features(x)), dim=1)


shapes = torch.randn(10, 1, 12, 12)
model = Metric()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(80):
    k = torch.randint(0, 10, (32,))
    a = shapes[k] + 0.7 * torch.randn(32, 1, 12, 12)
    p = shapes[k] + 0.7 * torch.randn(32, 1, 12, 12)
    n = shapes[(k + torch.randint(1, 10, (32,))) % 10] + 0.7 * torch.randn(32, 1, 12, 12)
    loss = F.triplet_margin_loss(model(a), model(p), model(n), margin=0.5)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 16 == 15:
        print(f"step {step + 1} triplet loss {loss.item():.4f}")
