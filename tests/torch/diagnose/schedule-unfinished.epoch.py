# SPDX-License-Identifier: GPL-3.0-or-later
"""A schedule over all steps that is stepped once per epoch."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, epochs=5, steps_per_epoch=16)
for epoch in range(5):
    for _ in range(16):
        inputs = torch.randn(32, 8)
        loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not mistake:
            scheduler.step()
    if mistake:
        scheduler.step()
