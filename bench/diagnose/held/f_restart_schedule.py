# SPDX-License-Identifier: GPL-3.0-or-later
"""Residual network on synthetic images with a cosine schedule."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.Conv2d(c, c, 3, padding=1, bias=False)
        self.na, self.nb = nn.BatchNorm2d(c), nn.BatchNorm2d(c)

    def forward(self, x):
        return torch.relu(x + self.nb(self.b(torch.relu(self.na(self.a(x))))))


torch.manual_seed(61)
classes = torch.randn(5, 3, 8, 8) * 0.5
y = torch.randint(0, 5, (400,))
x = classes[y] + torch.randn(400, 3, 8, 8)
loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
net = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), Residual(12), nn.AvgPool2d(4), nn.Flatten(), nn.Linear(48, 5))
epochs = 6
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=epochs // 2, gamma=0.1)
for epoch in range(epochs):
    net.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(xb), yb)
        loss.backward()
        optimizer.step()
        schedule.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
