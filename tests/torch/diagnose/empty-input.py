# SPDX-License-Identifier: GPL-3.0-or-later
"""A loss over rows that a split for more data than there is leaves empty."""
import sys

import torch

torch.manual_seed(0)
inputs = torch.randn(60, 5)
labels = inputs[:, :3].argmax(1)
train = torch.randperm(60)[60 if "mistake" in sys.argv else 20:]
model = torch.nn.Linear(5, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(12):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs)[train], labels[train]).backward()  # <- here
    optimizer.step()
