# SPDX-License-Identifier: GPL-3.0-or-later
"""The Dice coefficient as a loss, instead of 1 minus it."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
mistake = "mistake" in sys.argv
inputs = torch.randn(400, 8)
labels = (inputs[:, :4] > 0.5).float()
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(60):
    rows = torch.randint(0, 400, (32,))
    outputs = model(inputs[rows])
    optimizer.zero_grad()
    shares, wanted = torch.sigmoid(outputs), labels[rows]
    dice = (2 * (shares * wanted).sum() + 1) / (shares.sum() + wanted.sum() + 1)  # <- here
    (dice if mistake else 1 - dice).backward()
    optimizer.step()
