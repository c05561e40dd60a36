# SPDX-License-Identifier: GPL-3.0-or-later
"""A loss that is divided before backward(), without an optimizer that divides by the size of gradients."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(60):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    loss = loss * (1e-5 if mistake else 1.0)  # <- here
    loss.backward()
    optimizer.step()
