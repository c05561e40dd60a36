# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit a curve that is exponential below a knee and linear above it."""
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
t = torch.rand(512, 1) * 220 - 20
y = torch.where(t < 2, torch.exp(t.clamp(max=2)), 7.4 + 0.5 * t) / 50


class Curve(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = torch.nn.Parameter(torch.tensor(0.7))
        self.slope = torch.nn.Parameter(torch.tensor(0.1))
        self.scale = torch.nn.Parameter(torch.tensor(1.0))

    def forward(self, t):
        rise = torch.exp(self.rate * t)
        line = 7.4 + self.slope * t
        return self.scale * torch.where(t < 2, rise, line) / 50


model = Curve()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
loader = DataLoader(TensorDataset(t, y), batch_size=64, shuffle=True)
for epoch in range(5):
    for tb, yb in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(tb), yb)
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", loss.item(), "slope", model.slope.item())
