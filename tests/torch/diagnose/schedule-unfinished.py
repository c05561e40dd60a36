# SPDX-License-Identifier: GPL-3.0-or-later
"""A warm-up of more steps than the training has."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
warm = 400 if mistake else 10
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / warm))
for step in range(60):
    inputs = torch.randn(32, 8)
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()  # <- here
