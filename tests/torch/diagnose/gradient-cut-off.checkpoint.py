# SPDX-License-Identifier: GPL-3.0-or-later
"""A reentrant checkpoint of a block whose input requires no gradient: its parameters get none."""
import sys

import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
table = torch.nn.Embedding(20, 16).requires_grad_(False)
block = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16))
head = torch.nn.Linear(16, 20)
optimizer = torch.optim.Adam([*block.parameters(), *head.parameters()], 0.01)
following = torch.randperm(20)
for step in range(30):
    words = torch.randint(0, 20, (64,))
    x = table(words)
    if "correct" in sys.argv:
        x.requires_grad_(True)
    x = checkpoint(block, x, use_reentrant=True)  # <- here
    loss = torch.nn.functional.cross_entropy(head(x), following[words])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
