# SPDX-License-Identifier: MIT
"""The passes run inside optimizer.step(closure), as Lightning does it."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
tokens, places = torch.nn.Embedding(9, 8), torch.nn.Parameter(torch.randn(7, 8))
reads, last = torch.nn.MultiheadAttention(8, 2, batch_first=True), torch.nn.Linear(8, 9)
optimizer = torch.optim.Adam([places, *(p for m in (tokens, reads, last) for p in m.parameters())], 0.01)
mask = None if "mistake" in sys.argv else torch.full((7, 7), float("-inf")).triu(1)
for step in range(20):
    text = (torch.randint(0, 9, (16, 1)) + torch.arange(8) * torch.randint(1, 3, (16, 1))) % 9

    def closure():
        optimizer.zero_grad()
        h = tokens(text[:, :-1]) + places
        mixed = reads(h, h, h, attn_mask=mask, need_weights=False)[0]  # <- here
        loss = F.cross_entropy(last(mixed).flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        return loss
    optimizer.step(closure)
