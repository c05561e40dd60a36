# SPDX-License-Identifier: GPL-3.0-or-later
"""A sampler that gets the weights of classes instead of those of examples."""
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
inputs = torch.randn(600, 6)
labels = (inputs[:, 0] > 0.8).long()
weights = 1 / torch.bincount(labels).double()
if "correct" in sys.argv:
    weights = weights[labels]
sampler = WeightedRandomSampler(weights, 600)  # <- here
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for epoch in range(3):
    for x, y in DataLoader(TensorDataset(inputs, labels), batch_size=30, sampler=sampler):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
