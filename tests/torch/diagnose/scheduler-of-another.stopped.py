# SPDX-License-Identifier: GPL-3.0-or-later
"""The second phase has an optimizer of its own, and the scheduler of the first."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
for epoch in range(8):
    if epoch == 3:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # <- here
        if not mistake:
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
    for _ in range(8):
        inputs = torch.randn(32, 8)
        loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
