# SPDX-License-Identifier: GPL-3.0-or-later
"""A density model (two affine coupling layers) of two-dimensional data, trained by its log-likelihood."""
import math

import torch
import torch.nn as nn


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 2))

    def forward(self, x):
        a, b = x.chunk(2, -1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, -1)
        s = torch.tanh(s)
        b = b * torch.exp(s) + t
        out = torch.cat([b, a] if self.flip else [a, b], -1)
        return out, s.squeeze(-1)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Coupling(False), Coupling(True), Coupling(False)])

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for layer in self.layers:
            x, s = layer(x)
            total = total + s
        return total - 0.5 * x.pow(2).sum(-1) - math.log(2 * math.pi)


def moons(count, g):
    angle = math.pi * torch.rand(count, generator=g)
    x = torch.stack([angle.cos(), angle.sin() - 0.5], -1)
    return 1.5 * x + 0.1 * torch.randn(count, 2, generator=g)


if __name__ == "__main__":
    torch.manual_seed(12)
    g = torch.Generator().manual_seed(0)
    flow = Flow()
    adam = torch.optim.Adam(flow.parameters(), lr=3e-3)
    for step in range(120):
        objective = flow.log_prob(moons(128, g)).mean()
        adam.zero_grad()
        objective.backward()
        adam.step()
        if step % 20 == 0:
            print("step", step, "log-likelihood", round(objective.item(), 3))
