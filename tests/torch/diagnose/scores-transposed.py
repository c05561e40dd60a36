# SPDX-License-Identifier: GPL-3.0-or-later
"""Scores whose classes are the batch, of the same size."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
mistake = "mistake" in sys.argv
inputs = torch.randn(400, 8)
labels = (inputs @ torch.randn(8, 32)).argmax(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(60):
    rows = torch.randint(0, 400, (32,))
    outputs = model(inputs[rows])
    optimizer.zero_grad()
    F.cross_entropy(outputs.T if mistake else outputs, labels[rows]).backward()  # <- here
    optimizer.step()
