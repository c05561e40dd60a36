# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit a bank of filters to a mixture of tones."""
import torch
from torch import nn

torch.manual_seed(66)
tones = torch.stack([torch.sin(torch.arange(64) * f) for f in (0.2, 0.45, 0.9, 1.4)])


class Bank(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Conv1d(1, 16, 16, stride=4)
        self.readout = nn.Linear(16 * 13, 4)

    def forward(self, x):
        return self.readout(torch.relu(self.filters(x)).flatten(1))


def step(model, optimizer, criterion, x, y):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    optimizer.step()
    loss.backward()
    return loss.item()


model = Bank()
optimizer = torch.optim.Adamax(model.parameters(), lr=0.01)
for i in range(60):
    gains = torch.rand(32, 4)
    mixture = (gains @ tones).unsqueeze(1) + 0.05 * torch.randn(32, 1, 64)
    value = step(model, optimizer, nn.functional.l1_loss, mixture, gains)
    if i % 10 == 9:
        print("step", i + 1, "l1", round(value, 4))
