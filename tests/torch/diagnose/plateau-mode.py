# SPDX-License-Identifier: GPL-3.0-or-later
"""A scheduler that waits for a loss to rise."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max" if mistake else "min", patience=0)
total = 0.0
for step in range(80):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    total += loss.item()
    loss.backward()
    optimizer.step()
    if step % 8 == 7:
        scheduler.step(total)  # <- here
        total = 0.0
