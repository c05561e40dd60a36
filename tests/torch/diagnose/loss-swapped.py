# SPDX-License-Identifier: GPL-3.0-or-later
"""Binary cross-entropy whose arguments are swapped."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
mistake = "mistake" in sys.argv
images = (torch.rand(400, 16) > 0.5).float() * 0.9 + 0.05
model = torch.nn.Sequential(torch.nn.Linear(16, 6), torch.nn.ReLU(), torch.nn.Linear(6, 16), torch.nn.Sigmoid())
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(60):
    x = images[torch.randint(0, 400, (32,))]
    optimizer.zero_grad()
    pair = (x, model(x)) if mistake else (model(x), x)
    F.binary_cross_entropy(*pair).backward()  # <- here
    optimizer.step()
