# SPDX-License-Identifier: GPL-3.0-or-later
"""A group of parameters whose learning rate is 0."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.Adam([  # <- here
    {"params": model[0].parameters(), "lr": 0.0 if mistake else 0.001},
    {"params": model[2].parameters()}], lr=0.01)
for step in range(20):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    loss.backward()
    optimizer.step()
