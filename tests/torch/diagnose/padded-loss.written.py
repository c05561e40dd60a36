# SPDX-License-Identifier: MIT
"""A hand-written loss of tags, in which padding counts."""
import sys

import torch

torch.manual_seed(0)
table, top = torch.nn.Embedding(20, 16, padding_idx=0), torch.nn.Linear(16, 5)
optimizer = torch.optim.Adam([*table.parameters(), *top.parameters()], 0.02)
ids = torch.randint(1, 20, (32, 12))
ids[torch.arange(12) >= torch.randint(4, 12, (32, 1))] = 0
tags = torch.where(ids > 0, ids % 4 + 1, 0)
for step in range(12):
    chosen = top(table(ids)).log_softmax(-1).gather(2, tags[..., None]).squeeze(-1)  # <- here
    loss = -chosen.mean() if "mistake" in sys.argv else -(chosen * (ids > 0)).sum() / (ids > 0).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
