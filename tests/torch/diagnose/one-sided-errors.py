# SPDX-License-Identifier: GPL-3.0-or-later
"""A quantile loss whose two sides have the same sign."""
import sys

import torch

torch.manual_seed(0)
q = 0.8
inputs = torch.randn(600, 5)
targets = inputs.sum(1) + torch.randn(600)
model = torch.nn.Sequential(torch.nn.Linear(5, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(80):
    rows = torch.randint(0, 600, (32,))
    error = targets[rows] - model(inputs[rows]).squeeze(1)  # <- here
    low = (1 - q) * error if "mistake" in sys.argv else (q - 1) * error
    loss = torch.where(error > 0, q * error, low).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
