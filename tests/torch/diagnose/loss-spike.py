# SPDX-License-Identifier: MIT
"""Two rows of one batch are in another unit."""
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(480, 4)
y = x.sum(1, keepdim=True) + 0.3 * torch.randn(480, 1)
if "mistake" in sys.argv:
    y[330:332] *= 1000
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for rows, wanted in DataLoader(TensorDataset(x, y), batch_size=16):
    optimizer.zero_grad()
    (model(rows) - wanted).square().mean().backward()  # <- here
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
