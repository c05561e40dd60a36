# SPDX-License-Identifier: GPL-3.0-or-later
"""Forecasts the next pressure reading (Pa) from a window of readings, normalised per window."""
import torch
from torch import nn


class WindowNorm(nn.Module):
    """Normalises each window; learns a gain and an offset."""

    def __init__(self, eps=1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))
        self.offset = nn.Parameter(torch.zeros(1))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(dim=1, keepdim=True)
        var = (x ** 2).mean(dim=1, keepdim=True) - mean ** 2
        scale = torch.sqrt(var.clamp(min=0) + self.eps)
        return (x - mean) / scale * self.gain + self.offset, mean, scale


class Forecaster(nn.Module):
    def __init__(self, length):
        super().__init__()
        self.norm = WindowNorm()
        self.body = nn.Sequential(nn.Linear(length, 48), nn.GELU(), nn.Linear(48, 1))

    def forward(self, window):
        x, mean, scale = self.norm(window)
        return self.body(x), mean, scale


def readings(count, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(count, dtype=torch.float32)
    wave = torch.sin(t / 5) + 0.5 * torch.sin(t / 11)
    return 101325.0 + 2.0 * wave + 0.05 * torch.randn(count, generator=g)


def batches(series, length, size, steps):
    g = torch.Generator().manual_seed(11)
    for _ in range(steps):
        start = torch.randint(0, len(series) - length - 1, (size,), generator=g)
        yield (torch.stack([series[s:s + length] for s in start]),
               torch.stack([series[s + length:s + length + 1] for s in start]))


def train(length=24, size=64, steps=200):
    torch.manual_seed(0)
    model = Forecaster(length)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step, (window, target) in enumerate(batches(readings(3000, 2), length, size, steps)):
        out, mean, scale = model(window)
        loss = nn.functional.smooth_l1_loss(out, (target - mean) / 2.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print("step", step, "loss", round(loss.item(), 4))


train()
