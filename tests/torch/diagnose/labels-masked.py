# SPDX-License-Identifier: MIT
"""All labels of each batch are masked."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
table = torch.nn.Embedding(12, 16)
head = torch.nn.Linear(16, 12)
optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], 0.1)
for step in range(10):
    tokens = torch.randint(0, 12, (4, 9))
    labels = (tokens[:, 1:] + 1) % 12
    labels[:, :8 if "mistake" in sys.argv else 4] = -100
    scores = head(table(tokens[:, :-1]))
    optimizer.zero_grad()
    F.cross_entropy(scores.flatten(0, 1), labels.flatten()).backward()  # <- here
    optimizer.step()
