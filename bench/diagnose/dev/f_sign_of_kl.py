# SPDX-License-Identifier: GPL-3.0-or-later
"""Variational coding of two-dimensional clusters; both terms of the bound are written out."""
import torch
from torch import nn


class Bound(nn.Module):
    def __init__(self, dim=2, hidden=32, code=2):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, 2 * code))
        self.dec = nn.Sequential(nn.Linear(code, hidden), nn.Tanh(), nn.Linear(hidden, dim))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=1)
        z = mu + (logvar / 2).exp() * torch.randn_like(mu)
        rec = ((self.dec(z) - x) ** 2).sum(1)
        kl = 0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum(1)
        return (rec + 0.1 * kl).mean()


def clusters(n):
    c = torch.randint(0, 4, (n,))
    at = torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    return at[c] + 0.1 * torch.randn(n, 2)


torch.manual_seed(33)
bound = Bound()
opt = torch.optim.Adam(bound.parameters(), lr=2e-3)
for i in range(150):
    loss = bound(clusters(128))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 30 == 0:
        print(i, round(loss.item(), 3))
