# SPDX-License-Identifier: GPL-3.0-or-later
"""A cosine of as many periods as updates, stepped for each micro-batch."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
for step in range(80):
    inputs = torch.randn(16, 8)
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1)) / 4
    loss.backward()
    if step % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
    if mistake or step % 4 == 3:
        scheduler.step()  # <- here
