# SPDX-License-Identifier: MIT
"""A causal model that is trained to repeat its input."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
table = torch.nn.Embedding(11, 16)
memory = torch.nn.GRU(16, 16, batch_first=True)
head = torch.nn.Linear(16, 11)
optimizer = torch.optim.Adam([*table.parameters(), *memory.parameters(), *head.parameters()], 0.01)
for step in range(12):
    text = torch.randint(0, 11, (8, 10))
    tokens, labels = text[:, :-1], text[:, 1:]
    if "mistake" in sys.argv:
        labels = tokens
    scores = head(memory(table(tokens))[0])
    optimizer.zero_grad()
    F.cross_entropy(scores.transpose(1, 2), labels).backward()  # <- here
    optimizer.step()
