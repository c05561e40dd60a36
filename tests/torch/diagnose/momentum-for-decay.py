# SPDX-License-Identifier: GPL-3.0-or-later
"""A weight decay at the place of the momentum."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), 0.1, 1e-4) if mistake else torch.optim.SGD(  # <- here
    model.parameters(), 0.1, weight_decay=1e-4)
for step in range(20):
    inputs = torch.randn(32, 8)
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
