# SPDX-License-Identifier: GPL-3.0-or-later
"""A one-layer transformer learns to reverse a sequence of symbols."""
import math

import torch
import torch.nn.functional as F
from torch import nn

SYMBOLS, LENGTH, WIDTH = 12, 10, 48


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (f(x).view(b, self.heads, t, -1) for f in (self.q, self.k, self.v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        mixed = scores.softmax(-1) @ v
        return self.proj(mixed.reshape(b, t, -1))


class Reverser(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(SYMBOLS, WIDTH)
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.3)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention(WIDTH, heads=4)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 96), nn.GELU(), nn.Linear(96, WIDTH))
        self.out = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids):
        x = self.tokens(ids) + self.places
        x = x + self.attention(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return self.out(x)


torch.manual_seed(13)
model = Reverser()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step in range(150):
    ids = torch.randint(0, SYMBOLS, (64, LENGTH))
    wanted = ids.flip(1)
    logits = model(ids)
    loss = F.cross_entropy(logits.transpose(1, 2), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        right = (logits.argmax(-1) == wanted).float().mean().item()
        print(f"{step + 1:4d}  loss {loss.item():.4f}  right {right:.3f}")
