# SPDX-License-Identifier: GPL-3.0-or-later
"""Regression of a chemical property from counts of fragments, with a bounded activation."""
import torch
from torch import nn


class Bounded(nn.Module):
    def forward(self, x):
        return x.clamp(0.0, 1.0)


class Fragments:
    def __init__(self, seed=14):
        self.g = torch.Generator().manual_seed(seed)
        self.effect = torch.randn(20, generator=self.g)

    def batch(self, size):
        counts = torch.randint(0, 60, (size, 20), generator=self.g).float()
        value = counts @ self.effect / 60 + 0.05 * torch.randn(size, generator=self.g)
        return counts, value[:, None]


def network(width=40):
    return nn.Sequential(nn.Linear(20, width), Bounded(), nn.Linear(width, width), Bounded(), nn.Linear(width, 1))


def step(net, optimizer, batch):
    counts, value = batch
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(counts), value)
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    net = network()
    source = Fragments()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    history = []
    for _ in range(200):
        history.append(step(net, optimizer, source.batch(64)))
    print(history[0], history[-1])


main()
