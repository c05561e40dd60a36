# SPDX-License-Identifier: GPL-3.0-or-later
"""A warm-up that is longer than the training."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / (100000 if mistake else 5)))
for step in range(60):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    loss.backward()
    optimizer.step()
    scheduler.step()  # <- here
