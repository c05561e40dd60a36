# SPDX-License-Identifier: GPL-3.0-or-later
"""A sum over all weights whose factor is too large."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
mistake = "mistake" in sys.argv
inputs = torch.randn(400, 8)
labels = inputs[:, :3].argmax(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(60):
    rows = torch.randint(0, 400, (32,))
    outputs = model(inputs[rows])
    optimizer.zero_grad()
    penalty = sum(one.abs().sum() for one in model.parameters())
    loss = F.cross_entropy(outputs, labels[rows])
    loss = loss + (0.5 if mistake else 1e-5) * penalty  # <- here
    loss.backward()
    optimizer.step()
