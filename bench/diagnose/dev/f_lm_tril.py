# SPDX-License-Identifier: GPL-3.0-or-later
"""A decoder of arithmetic strings with attention by hand, in a registry."""
import math

import torch
from torch import nn
from torch.nn import functional as F

LAYERS = {}
ALPHABET = "0123456789+=;"


def layer(name):
    def add(cls):
        LAYERS[name] = cls
        return cls
    return add


@layer("attention")
class CausalHeads(nn.Module):
    def __init__(self, dim, heads=4, longest=64):
        super().__init__()
        self.h = heads
        self.kqv = nn.Linear(dim, 3 * dim)
        self.o = nn.Linear(dim, dim)
        self.register_buffer("allowed", torch.tril(torch.ones(longest, longest), diagonal=1).bool())

    def forward(self, x):
        b, t, d = x.size()
        k, q, v = self.kqv(x).chunk(3, dim=-1)
        k, q, v = (m.reshape(b, t, self.h, d // self.h).permute(0, 2, 1, 3) for m in (k, q, v))
        a = q @ k.mT / math.sqrt(d // self.h)
        a = torch.where(self.allowed[:t, :t], a, torch.tensor(-1e9)).softmax(dim=-1)
        return self.o((a @ v).permute(0, 2, 1, 3).reshape(b, t, d))


@layer("mlp")
class Mlp(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(dim, 3 * dim), nn.ReLU(), nn.Linear(3 * dim, dim))

    def forward(self, x):
        return self.f(x)


class Residual(nn.Module):
    def __init__(self, kind, dim):
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(dim), LAYERS[kind](dim)

    def forward(self, x):
        return x + self.inner(self.norm(x))


def sums(n, g):
    a = torch.randint(0, 50, (n,), generator=g)
    b = torch.randint(0, 50, (n,), generator=g)
    rows = ["%02d+%02d=%02d;" % (x, y, x + y) * 3 for x, y in zip(a.tolist(), b.tolist())]
    return torch.tensor([[ALPHABET.index(c) for c in row] for row in rows])


torch.manual_seed(4)
dim = 48
net = nn.ModuleDict({"tok": nn.Embedding(len(ALPHABET), dim), "pos": nn.Embedding(64, dim),
                     "body": nn.Sequential(*[Residual(k, dim) for k in ["attention", "mlp"] * 2]),
                     "out": nn.Linear(dim, len(ALPHABET))})


def predict(ids):
    return net["out"](net["body"](net["tok"](ids) + net["pos"].weight[:ids.size(1)]))


opt = torch.optim.AdamW(net.parameters(), lr=3e-3, betas=(0.9, 0.95))
stream = torch.Generator().manual_seed(5)
for step in range(150):
    ids = sums(24, stream)
    logits = predict(ids[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), ids[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 0:
        print(step, round(loss.item(), 4))
