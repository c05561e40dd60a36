# SPDX-License-Identifier: GPL-3.0-or-later
"""A focal loss whose factor is that of the mean of the batch."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
reduction = "mean" if "mistake" in sys.argv else "none"
inputs = torch.randn(600, 8)
labels = (inputs[:, 0] > 1).long()
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(60):
    rows = torch.randint(0, 600, (32,))
    each = F.cross_entropy(model(inputs[rows]), labels[rows], reduction=reduction)  # <- here
    loss = (0.25 * (1 - torch.exp(-each)) ** 2 * each).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
