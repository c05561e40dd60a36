# SPDX-License-Identifier: GPL-3.0-or-later
"""A network that is to tell the noise of its input, and is compared with the input."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 64), torch.nn.SiLU(), torch.nn.Linear(64, 64), torch.nn.SiLU(),
                            torch.nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), 0.005)
for step in range(120):
    clean = torch.randint(0, 2, (64, 2)).float()
    noise, level = torch.randn(64, 2), torch.rand(64, 1)
    noisy = clean * (1 - level) + noise * level
    outputs = model(torch.cat([noisy, level], 1))
    optimizer.zero_grad()
    F.mse_loss(outputs, noisy if "mistake" in sys.argv else noise).backward()  # <- here
    optimizer.step()
