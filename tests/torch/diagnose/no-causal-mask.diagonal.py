# SPDX-License-Identifier: MIT
"""A causal mask that lets each position see the next one."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
tokens, places = torch.nn.Embedding(9, 8), torch.nn.Parameter(torch.randn(7, 8))
q, k, v, last = (torch.nn.Linear(8, size) for size in (8, 8, 8, 9))
optimizer = torch.optim.Adam([places, *(p for m in (tokens, q, k, v, last) for p in m.parameters())], 0.01)
seen = torch.ones(7, 7).tril(1 if "mistake" in sys.argv else 0)
for step in range(20):
    text = (torch.randint(0, 9, (16, 1)) + torch.arange(8) * torch.randint(1, 3, (16, 1))) % 9
    h = tokens(text[:, :-1]) + places
    scores = torch.einsum("btd,bsd->bts", q(h), k(h)) / 8 ** 0.5
    weights = torch.where(seen > 0, scores, torch.tensor(-1e9)).softmax(-1)  # <- here
    loss = F.cross_entropy(last(weights @ v(h)).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
