# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantile regression: three quantiles of a noisy curve at once."""
import torch
from torch import nn


class PinballLoss(nn.Module):
    def __init__(self, quantiles):
        super().__init__()
        self.register_buffer("q", torch.tensor(quantiles))

    def forward(self, prediction, target):
        error = target.unsqueeze(1) - prediction
        return torch.maximum(self.q * error, (self.q - 1) * error).sum(1).mean()


class Bands(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 3))

    def forward(self, x):
        low, up1, up2 = self.net(x).unbind(1)
        middle = low + nn.functional.softplus(up1)
        return torch.stack([low, middle, middle + nn.functional.softplus(up2)], dim=1)


torch.manual_seed(15)
x = torch.rand(800, 1) * 4 - 2
y = (torch.sin(2 * x) + (0.1 + 0.2 * x.abs()) * torch.randn(800, 1)).squeeze(1)
model, criterion = Bands(), PinballLoss([0.1, 0.5, 0.9])
optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
for epoch in range(8):
    for rows in torch.randperm(800).split(80):
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        below = (y.unsqueeze(1) < model(x)).float().mean(0).tolist()
    print(f"epoch {epoch} loss {loss.item():.4f} share below {', '.join(f'{b:.2f}' for b in below)}")
