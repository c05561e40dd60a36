# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of 0 and 1 where 1 and -1 are wanted."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
mistake = "mistake" in sys.argv
inputs = torch.randn(400, 8)
labels = (inputs[:, 0] > 0).float()
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(60):
    rows = torch.randint(0, 400, (32,))
    outputs = model(inputs[rows])
    optimizer.zero_grad()
    wanted = labels[rows] if mistake else 2 * labels[rows] - 1
    F.soft_margin_loss(outputs.squeeze(1), wanted).backward()  # <- here
    optimizer.step()
