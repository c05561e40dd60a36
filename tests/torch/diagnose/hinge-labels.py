# SPDX-License-Identifier: GPL-3.0-or-later
"""A hand-written hinge loss with labels of 0 and 1."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
mistake = "mistake" in sys.argv
inputs = torch.randn(400, 8)
labels = (inputs[:, 0] > 0).float()
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(60):
    rows = torch.randint(0, 400, (32,))
    outputs = model(inputs[rows])
    optimizer.zero_grad()
    wanted = labels[rows] if mistake else 2 * labels[rows] - 1
    torch.clamp(1 - wanted * outputs.squeeze(1), min=0).mean().backward()  # <- here
    optimizer.step()
