# SPDX-License-Identifier: GPL-3.0-or-later
"""Residual network with batch normalization, label smoothing, warm-up and cosine schedule."""
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class BasicBlock(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.down = nn.Sequential()
        if stride != 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))
        # the block starts as the identity
        nn.init.zeros_(self.bn2.weight)

    def forward(self, x):
        out = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(out)) + self.down(x))


torch.manual_seed(10)
y = torch.randint(0, 6, (480,))
x = torch.randn(6, 3, 8, 8)[y] + 1.5 * torch.randn(480, 3, 8, 8)
loader = DataLoader(TensorDataset(x, y), batch_size=48, shuffle=True)
model = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU(),
                      BasicBlock(12, 12), BasicBlock(12, 24, 2), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(96, 6))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
total, warm = 60, 10


def factor(step):
    return step / warm if step < warm else 0.5 * (1 + math.cos(math.pi * (step - warm) / (total - warm)))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for epoch in range(6):
    right = 0
    for xb, yb in loader:
        out = model(xb)
        loss = criterion(out, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        right += (out.argmax(1) == yb).sum().item()
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy {right / 480:.3f} lr {scheduler.get_last_lr()[0]:.4f}")
