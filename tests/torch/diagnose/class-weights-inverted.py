# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights of classes that grow with their frequency."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
mistake = "mistake" in sys.argv
inputs = torch.randn(400, 8)
labels = (inputs[:, 0] > 1.2).long()
shares = torch.bincount(labels).float() / len(labels)
weights = shares if mistake else 1 / (2 * shares)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(60):
    rows = torch.randint(0, 400, (32,))
    outputs = model(inputs[rows])
    optimizer.zero_grad()
    F.cross_entropy(outputs, labels[rows], weight=weights).backward()  # <- here
    optimizer.step()
