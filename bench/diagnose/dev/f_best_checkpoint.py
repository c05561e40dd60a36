# SPDX-License-Identifier: GPL-3.0-or-later
"""Polynomial regression; a training class keeps its own copy of the model."""
import copy

import torch
from torch import nn, optim


class Fit:
    def __init__(self, model, optimizer, loss):
        self.model = copy.deepcopy(model)
        self.optimizer = optimizer
        self.loss = loss
        self.best = float("inf")

    def step(self, x, y):
        self.model.train()
        self.optimizer.zero_grad()
        value = self.loss(self.model(x), y)
        value.backward()
        self.optimizer.step()
        self.best = min(self.best, value.item())
        return value.item()


def data(n):
    x = torch.rand(n, 1) * 2 - 1
    return torch.cat([x, x ** 2, x ** 3], 1), 1 - 2 * x + 3 * x ** 3 + 0.05 * torch.randn(n, 1)


torch.manual_seed(36)
model = nn.Sequential(nn.Linear(3, 20), nn.Tanh(), nn.Linear(20, 1))
optimizer = optim.RMSprop(model.parameters(), lr=0.01)
fit = Fit(model, optimizer, nn.MSELoss())
for i in range(80):
    value = fit.step(*data(64))
    if i % 10 == 0:
        print(f"step {i} loss {value:.4f} best {fit.best:.4f}")
