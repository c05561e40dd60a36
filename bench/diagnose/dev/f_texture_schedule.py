# SPDX-License-Identifier: GPL-3.0-or-later
"""Classify textures with a small convolutional network and an exponential schedule."""
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
EPOCHS = 6


def textures(n):
    label = torch.randint(0, 4, (n,))
    grid = torch.arange(12).float()
    angle = label.float()[:, None, None] * 0.785
    wave = torch.sin(grid[None, :, None] * torch.cos(angle) * 1.6 + grid[None, None, :] * torch.sin(angle) * 1.6)
    return (wave + 0.6 * torch.randn(n, 12, 12)).unsqueeze(1), label


x, y = textures(480)
loader = DataLoader(TensorDataset(x, y), batch_size=48, shuffle=True)
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 4),
)
optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
scheduler = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
for epoch in range(EPOCHS):
    seen, right = 0, 0
    for xb, yb in loader:
        out = net(xb)
        loss = nn.functional.cross_entropy(out, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        seen += len(yb)
        right += (out.argmax(1) == yb).sum().item()
    print(f"epoch {epoch} loss {loss.item():.3f} train accuracy {right / seen:.3f}")
