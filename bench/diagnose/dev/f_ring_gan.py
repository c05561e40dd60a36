# SPDX-License-Identifier: GPL-3.0-or-later
"""A GAN on a ring of eight Gaussians."""
import math

import torch
from torch import nn


def ring(count, g):
    k = torch.randint(0, 8, (count,), generator=g).float()
    centre = torch.stack([torch.cos(k * math.pi / 4), torch.sin(k * math.pi / 4)], -1)
    return 2 * centre + 0.05 * torch.randn(count, 2, generator=g)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, z):
        return self.net(z)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2),
                                 nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x)


class Game:
    def __init__(self):
        self.g, self.d = Generator(), Critic()
        self.go = torch.optim.Adam(self.g.parameters(), lr=1e-2)
        self.do = torch.optim.Adam(self.d.parameters(), lr=2e-4)
        self.bce = nn.BCEWithLogitsLoss()

    def play(self, real):
        n = len(real)
        fake = self.g(torch.randn(n, 4))
        self.do.zero_grad()
        loss_d = (self.bce(self.d(real), torch.ones(n, 1)) + self.bce(self.d(fake.detach()), torch.zeros(n, 1)))
        loss_d.backward()
        self.do.step()
        self.go.zero_grad()
        loss_g = self.bce(self.d(fake), torch.ones(n, 1))
        loss_g.backward()
        self.go.step()
        return loss_d.item(), loss_g.item(), fake.detach().std(0).mean().item()


torch.manual_seed(0)
source = torch.Generator().manual_seed(1)
game = Game()
for turn in range(300):
    record = game.play(ring(128, source))
    if turn % 50 == 0:
        print(turn, *("%.3f" % v for v in record))
