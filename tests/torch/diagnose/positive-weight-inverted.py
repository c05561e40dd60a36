# SPDX-License-Identifier: GPL-3.0-or-later
"""pos_weight as the odds instead of their inverse."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
mistake = "mistake" in sys.argv
inputs = torch.randn(400, 8)
labels = (inputs[:, 0] > 1.0).float()
odds = labels.sum() / (1 - labels).sum()
weight = odds if mistake else 1 / odds
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(60):
    rows = torch.randint(0, 400, (32,))
    outputs = model(inputs[rows])
    optimizer.zero_grad()
    F.binary_cross_entropy_with_logits(outputs.squeeze(1), labels[rows], pos_weight=weight).backward()  # <- here
    optimizer.step()
