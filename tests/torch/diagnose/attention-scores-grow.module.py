# SPDX-License-Identifier: MIT
"""The attention of a PyTorch layer at a rate that is too high for it."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
tokens, places, last = torch.nn.Embedding(9, 64), torch.nn.Parameter(torch.randn(7, 64)), torch.nn.Linear(64, 9)
reads = torch.nn.MultiheadAttention(64, 2, batch_first=True)
rate = 0.1 if "mistake" in sys.argv else 0.002
optimizer = torch.optim.Adam([places, *(p for m in (tokens, reads, last) for p in m.parameters())], rate)
mask = torch.ones(7, 7, dtype=torch.bool).triu(1)
for step in range(70):
    text = (torch.randint(0, 9, (16, 1)) + torch.arange(8) * torch.randint(1, 3, (16, 1))) % 9
    h = tokens(text[:, :-1]) + places
    mixed = reads(h, h, h, attn_mask=mask, need_weights=False)[0]  # <- here
    loss = F.cross_entropy(last(h + mixed).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
