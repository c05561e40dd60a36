# SPDX-License-Identifier: MIT
"""Attention that sees the tokens it has to predict."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
tokens, places = torch.nn.Embedding(9, 8), torch.nn.Parameter(torch.randn(7, 8))
q, k, v, last = (torch.nn.Linear(8, size) for size in (8, 8, 8, 9))
optimizer = torch.optim.Adam([places, *(p for m in (tokens, q, k, v, last) for p in m.parameters())], 0.01)
for step in range(20):
    text = (torch.randint(0, 9, (16, 1)) + torch.arange(8) * torch.randint(1, 3, (16, 1))) % 9
    h = tokens(text[:, :-1]) + places
    scores = q(h) @ k(h).transpose(1, 2) / 8 ** 0.5
    if not MISTAKE:
        scores = scores.masked_fill(torch.ones(7, 7, dtype=torch.bool).triu(1), float("-inf"))
    mixed = scores.softmax(-1) @ v(h)  # <- here
    loss = F.cross_entropy(last(mixed).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
