# SPDX-License-Identifier: GPL-3.0-or-later
"""Calibrate a sensor model: readings of five channels to a temperature."""
import torch
from torch import nn


class Calibration(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 1))

    def forward(self, readings):
        return self.inner(readings).squeeze(-1)


def readings(n):
    temp = torch.rand(n) * 2 - 1
    gain = torch.tensor([1.0, -0.5, 0.3, 0.8, -1.2])
    return temp[:, None] * gain + 0.05 * torch.randn(n, 5), temp + 0.3 * temp ** 2


def deviation(pred, true):
    return (pred - true).mean() ** 2


def main():
    torch.manual_seed(15)
    x, y = readings(2000)
    model = Calibration()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for i in range(200):
        rows = torch.randperm(2000)[:50]
        loss = deviation(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 50 == 0:
            with torch.no_grad():
                print(i, loss.item(), "rmse", (model(x) - y).pow(2).mean().sqrt().item())


main()
