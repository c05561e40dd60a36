# SPDX-License-Identifier: MIT
"""Ratings by embeddings, with a decay that takes a large part of them in each step."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
users, items = torch.nn.Embedding(30, 4), torch.nn.Embedding(40, 4)
for table in (users, items):
    torch.nn.init.normal_(table.weight, std=0.5)
decay = 0.2 if "mistake" in sys.argv else 1e-4
optimizer = torch.optim.SGD([*users.parameters(), *items.parameters()], 0.5, 0.9, weight_decay=decay)  # <- here
p, q = torch.randn(30, 2), torch.randn(40, 2)
for step in range(120):
    u, i = torch.randint(0, 30, (256,)), torch.randint(0, 40, (256,))
    loss = F.mse_loss((users(u) * items(i)).sum(1), (p[u] * q[i]).sum(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
