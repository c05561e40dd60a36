# SPDX-License-Identifier: GPL-3.0-or-later
"""Similarities that are multiplied by the temperature."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
mistake = "mistake" in sys.argv
inputs = torch.randn(400, 8)
labels = torch.arange(32)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(100):
    rows = torch.randint(0, 400, (32,))
    outputs = model(inputs[rows])
    optimizer.zero_grad()
    other = model(inputs[rows] + 0.1 * torch.randn(32, 8))
    scores = F.normalize(outputs, dim=1) @ F.normalize(other, dim=1).T
    scores = scores * 0.05 if mistake else scores / 0.05  # <- here
    F.cross_entropy(scores, labels).backward()
    optimizer.step()
