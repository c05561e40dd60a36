# SPDX-License-Identifier: GPL-3.0-or-later
"""OneCycleLR with one number for all groups."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
groups = [{"params": model[0].parameters(), "lr": 1e-2}, {"params": model[2].parameters(), "lr": 1e-1}]
optimizer = torch.optim.SGD(groups, lr=1e-2)  # <- here
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-1 if mistake else [1e-2, 1e-1], total_steps=40)
for step in range(40):
    inputs = torch.randn(32, 8)
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
