# SPDX-License-Identifier: GPL-3.0-or-later
"""Smoothed labels that sum up to more than 1."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
classes, e = 6, 0.1
more = e if "mistake" in sys.argv else e / classes
inputs = torch.randn(600, 8)
labels = inputs[:, :classes].argmax(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, classes))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(60):
    rows = torch.randint(0, 600, (32,))
    soft = (1 - e) * F.one_hot(labels[rows], classes) + more
    optimizer.zero_grad()
    F.cross_entropy(model(inputs[rows]), soft).backward()  # <- here
    optimizer.step()
