# SPDX-License-Identifier: MIT
"""Accumulated micro-batches with few and with many labels, each averaged by its own number."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
tokens, last = torch.nn.Embedding(12, 16), torch.nn.Linear(16, 12)
optimizer = torch.optim.Adam([*tokens.parameters(), *last.parameters()], 0.01)
for step in range(20):
    passes = [torch.randint(0, 12, (4, width)) for width in (4, 32)]
    total = sum(text[:, 1:].numel() for text in passes)
    optimizer.zero_grad()
    for text in passes:
        scores, labels = last(tokens(text[:, :-1])).flatten(0, 1), text[:, 1:].flatten()
        if "mistake" in sys.argv:
            loss = F.cross_entropy(scores, labels) / 2  # <- here
        else:
            loss = F.cross_entropy(scores, labels, reduction="sum") / total
        loss.backward()
    optimizer.step()
