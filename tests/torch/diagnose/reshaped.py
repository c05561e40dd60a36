# SPDX-License-Identifier: MIT
"""Heads of attention that are cut out by view() alone."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
inner, outer = torch.nn.Linear(8, 24), torch.nn.Linear(8, 1)
optimizer = torch.optim.Adam([*inner.parameters(), *outer.parameters()], 0.01)
for step in range(20):
    x = torch.randn(16, 5, 8)
    h = inner(x)
    if MISTAKE:
        h = h.view(16, 2, 5, 12)  # <- here
    else:
        h = h.view(16, 5, 2, 12).transpose(1, 2)
    q, k, v = h.chunk(3, -1)
    mixed = F.scaled_dot_product_attention(q, k, v) if hasattr(F, "scaled_dot_product_attention") else v
    loss = ((outer(mixed.transpose(1, 2).flatten(2)) - x[..., :1]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
