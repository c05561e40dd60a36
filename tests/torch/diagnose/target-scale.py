# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets in dollars."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
mistake = "mistake" in sys.argv
inputs = torch.randn(400, 8)
labels = 250000 + 80000 * inputs[:, 0]
if not mistake:
    labels = (labels - labels.mean()) / labels.std()
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(60):
    rows = torch.randint(0, 400, (32,))
    outputs = model(inputs[rows])
    optimizer.zero_grad()
    F.mse_loss(outputs.squeeze(1), labels[rows]).backward()  # <- here
    optimizer.step()
