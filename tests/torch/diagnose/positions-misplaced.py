# SPDX-License-Identifier: MIT
"""Positions that are counted over the batch, which comes first here."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
tokens, places = torch.nn.Embedding(9, 8), torch.nn.Embedding(32, 8)
reads, last = torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), torch.nn.Linear(8, 9)
optimizer = torch.optim.Adam([p for m in (tokens, places, reads, last) for p in m.parameters()], 0.01)
mask = torch.full((7, 7), float("-inf")).triu(1)
for step in range(20):
    text = (torch.randint(0, 9, (16, 1)) + torch.arange(8)) % 9
    h = tokens(text[:, :-1])
    count = torch.arange(h.shape[0]).unsqueeze(1) if "mistake" in sys.argv else torch.arange(h.shape[1])
    h = h + places(count)  # <- here
    loss = F.cross_entropy(last(reads(h, src_mask=mask)).flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
