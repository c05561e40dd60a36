# SPDX-License-Identifier: GPL-3.0-or-later
import torch
import torch.nn as nn


class ResidualUnit(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)
        nn.init.normal_(self.down.weight, std=0.02)

    def forward(self, x):
        shortcut = x
        x = self.norm(x)
        x = torch.relu(self.up(x))
        x = self.down(x)
        return x


class Tower(nn.Module):
    def __init__(self, inputs, dim, depth, outputs):
        super().__init__()
        self.stem = nn.Linear(inputs, dim)
        self.units = nn.Sequential(*[ResidualUnit(dim) for _ in range(depth)])
        self.tail = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, outputs))

    def forward(self, x):
        return self.tail(self.units(self.stem(x)))


class Trainer:
    def __init__(self, model, lr, steps):
        self.model, self.steps = model, steps
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.warm = torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.1, 1.0, 20)

    def fit(self, sample):
        self.model.train()
        for step in range(self.steps):
            x, y = sample()
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            self.warm.step()
            if step % 40 == 0:
                print(step, loss.item())


torch.manual_seed(31)
mix = torch.randn(10, 3)


def sample(n=64):
    x = torch.randn(n, 10)
    return x, torch.sin(x @ mix)


Trainer(Tower(10, 48, 16, 3), 1e-3, 180).fit(sample)
