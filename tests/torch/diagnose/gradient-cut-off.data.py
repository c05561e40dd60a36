# SPDX-License-Identifier: MIT
"""A layer's output is taken by .data."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
encoder, head = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], 0.01)
for step in range(12):
    code = torch.tanh(encoder(x))
    if "mistake" in sys.argv:
        code = code.data * 2  # <- here
    optimizer.zero_grad()
    F.cross_entropy(head(code), y).backward()
    optimizer.step()
