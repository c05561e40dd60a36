# SPDX-License-Identifier: GPL-3.0-or-later
"""Clipping of each element by a limit that is far too small."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(60):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    loss.backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 1e-5 if mistake else 0.5)  # <- here
    optimizer.step()
