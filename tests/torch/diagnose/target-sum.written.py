# SPDX-License-Identifier: GPL-3.0-or-later
"""Soft targets of a hand-written cross-entropy, with targets filled in place."""
import sys

import torch

torch.manual_seed(0)
classes = 6
inputs = torch.randn(600, 8)
labels = inputs[:, :classes].argmax(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, classes))
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(60):
    rows = torch.randint(0, 600, (32,))
    soft = torch.full((32, classes), 0.05)
    soft.scatter_(1, labels[rows].unsqueeze(1), 1.0 if "mistake" in sys.argv else 0.75)
    log = torch.log_softmax(model(inputs[rows]), dim=1)
    loss = torch.mean(torch.sum(-soft * log, dim=1))  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
