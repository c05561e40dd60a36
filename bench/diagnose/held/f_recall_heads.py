# SPDX-License-Identifier: GPL-3.0-or-later
"""Associative recall: after pairs of keys and values comes a key; attention shall find its value."""
import math

import torch
import torch.nn.functional as F
from torch import nn

KEYS, VALUES, PAIRS = 8, 8, 4


class Recall(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.keys, self.values = nn.Embedding(KEYS, width), nn.Embedding(VALUES, width)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, VALUES)

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.size)).transpose(1, 2)

    def forward(self, keys, values, wanted):
        memory = self.keys(keys)
        q = self.split(self.q(2 * self.keys(wanted)))
        k, v = self.split(self.k(2 * memory)), self.split(self.v(self.values(values)))
        scores = q @ k.transpose(-2, -1) * math.sqrt(self.size)
        weights = scores.softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2)).squeeze(1)


def episodes(count):
    keys = torch.rand(count, KEYS).argsort(1)[:, :PAIRS]
    values = torch.randint(0, VALUES, (count, PAIRS))
    pick = torch.randint(0, PAIRS, (count, 1))
    return keys, values, keys.gather(1, pick), values.gather(1, pick).squeeze(1)


torch.manual_seed(83)
model = Recall()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for step in range(200):
    keys, values, wanted, value = episodes(64)
    logits = model(keys, values, wanted)
    loss = F.cross_entropy(logits, value)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(f"step {step + 1}: loss {loss.item():.4f}, right {(logits.argmax(1) == value).float().mean().item():.3f}")
