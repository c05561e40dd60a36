# SPDX-License-Identifier: GPL-3.0-or-later
"""A schedule that writes one rate into all groups."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.Adam([{"params": model[0].parameters(), "lr": 1e-3}, {"params": model[2].parameters()}], lr=1e-2)
for step in range(40):
    for group in optimizer.param_groups:
        if mistake:
            group["lr"] = 1e-2 * (1 - step / 40)  # <- here
        else:
            group["lr"] = group.setdefault("initial_lr", group["lr"]) * (1 - step / 40)
    inputs = torch.randn(32, 8)
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
