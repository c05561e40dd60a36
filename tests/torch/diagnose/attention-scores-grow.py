# SPDX-License-Identifier: MIT
"""Attention without the division by sqrt(d), and a rate that is too high for it."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
tokens, places = torch.nn.Embedding(9, 64), torch.nn.Parameter(torch.randn(7, 64))
q, k, v, last = (torch.nn.Linear(64, size) for size in (64, 64, 64, 9))
rate = 0.02 if MISTAKE else 0.002
optimizer = torch.optim.Adam([places, *(p for m in (tokens, q, k, v, last) for p in m.parameters())], rate)
for step in range(70):
    text = (torch.randint(0, 9, (16, 1)) + torch.arange(8) * torch.randint(1, 3, (16, 1))) % 9
    h = tokens(text[:, :-1]) + places
    scores = q(h) @ k(h).transpose(1, 2) / (1 if MISTAKE else 8)
    scores = scores.masked_fill(torch.ones(7, 7, dtype=torch.bool).triu(1), float("-inf"))
    mixed = scores.softmax(-1) @ v(h)  # <- here
    loss = F.cross_entropy(last(mixed).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
