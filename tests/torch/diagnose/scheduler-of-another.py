# SPDX-License-Identifier: GPL-3.0-or-later
"""A scheduler of an optimizer that never steps."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
other = torch.optim.SGD(model.parameters(), lr=0.1) if mistake else optimizer  # <- here
scheduler = torch.optim.lr_scheduler.StepLR(other, 10, 0.5)
for step in range(40):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    loss.backward()
    optimizer.step()
    scheduler.step()
