# SPDX-License-Identifier: GPL-3.0-or-later
"""An output that is compared with itself."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
mistake = "mistake" in sys.argv
inputs = torch.randn(400, 8)
labels = inputs[:, :2].clone()
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(60):
    rows = torch.randint(0, 400, (32,))
    outputs = model(inputs[rows])
    optimizer.zero_grad()
    wanted = outputs if mistake else labels[rows]
    F.mse_loss(outputs, wanted).backward()  # <- here
    optimizer.step()
