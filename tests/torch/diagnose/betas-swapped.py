# SPDX-License-Identifier: GPL-3.0-or-later
"""The betas of Adam in the wrong order."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
betas = (0.999, 0.9) if mistake else (0.9, 0.999)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=betas)  # <- here
for step in range(20):
    inputs = torch.randn(32, 8)
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
