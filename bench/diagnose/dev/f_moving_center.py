# SPDX-License-Identifier: GPL-3.0-or-later
"""Anomaly scores: an encoder pulls the normal samples to a moving centre and pushes the odd ones away."""
import torch
from torch import nn


def normal(n):
    z = torch.randn(n, 3)
    return torch.cat([z, z.sin(), z[:, :2] * 0.5], 1)


def odd(n):
    return torch.rand(n, 8) * 4 - 2


class CentreModel:
    def __init__(self, dim, keep):
        self.encoder = nn.Linear(8, dim)
        self.keep = keep
        self.centre = torch.zeros(dim)

    def scores(self, x):
        return (self.encoder(x) - self.centre).pow(2).sum(1)

    def move_centre(self, x):
        self.centre = self.keep * self.centre + (1 - self.keep) * self.encoder(x).mean(0)


def main():
    torch.manual_seed(31)
    model = CentreModel(dim=6, keep=0.95)
    optimizer = torch.optim.SGD(model.encoder.parameters(), lr=0.01)
    for step in range(200):
        good, bad = normal(32), odd(32)
        model.move_centre(good)
        loss = model.scores(good).mean() + torch.relu(4.0 - model.scores(bad)).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step} loss {loss.item():.4f}")


main()
