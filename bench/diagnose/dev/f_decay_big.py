# SPDX-License-Identifier: GPL-3.0-or-later
"""Matrix factorisation of ratings with regularised embeddings."""
import torch
from torch import nn, optim


class Factors(nn.Module):
    def __init__(self, users, items, rank=8):
        super().__init__()
        self.user = nn.Embedding(users, rank)
        self.item = nn.Embedding(items, rank)
        self.mean = nn.Parameter(torch.zeros(()))
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.3)

    def forward(self, u, i):
        return self.mean + (self.user(u) * self.item(i)).sum(-1)


def ratings(users, items, count):
    g = torch.Generator().manual_seed(17)
    p, q = torch.randn(users, 3, generator=g), torch.randn(items, 3, generator=g)
    u = torch.randint(0, users, (count,), generator=g)
    i = torch.randint(0, items, (count,), generator=g)
    return u, i, 3.5 + (p[u] * q[i]).sum(-1) + 0.1 * torch.randn(count, generator=g)


OPTIMIZERS = {
    "adamw": lambda m: optim.AdamW(m.parameters(), lr=1e-2, weight_decay=1e-2),
    "sgd": lambda m: optim.SGD(m.parameters(), lr=0.4, momentum=0.9, weight_decay=0.2),
}


def train(kind="sgd", users=60, items=80, steps=250):
    torch.manual_seed(1)
    model = Factors(users, items)
    optimizer = OPTIMIZERS[kind](model)
    u, i, r = ratings(users, items, 6000)
    for step in range(steps):
        rows = torch.randint(0, len(r), (512,))
        loss = nn.functional.mse_loss(model(u[rows], i[rows]), r[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(step, f"{loss.item():.4f}")


train()
