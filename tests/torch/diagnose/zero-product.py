# SPDX-License-Identifier: MIT
"""Both factors of a low-rank adapter start at 0."""
import sys

import torch

torch.manual_seed(0)
base = torch.nn.Linear(6, 6).requires_grad_(False)
down = torch.nn.Parameter(torch.randn(2, 6) * (0 if "mistake" in sys.argv else 0.4))  # <- here
up = torch.nn.Parameter(torch.zeros(6, 2))
optimizer = torch.optim.Adam([down, up], 0.01)
x = torch.randn(32, 6)
y = x.roll(1, 1)
for step in range(20):
    optimizer.zero_grad()
    (base(x) + x @ down.t() @ up.t() - y).square().mean().backward()
    optimizer.step()
