# SPDX-License-Identifier: GPL-3.0-or-later
"""An optimizer that is created in each step."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(40):
    inputs = torch.randn(32, 8)
    if mistake:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)  # <- here
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1)).backward()
    optimizer.step()
