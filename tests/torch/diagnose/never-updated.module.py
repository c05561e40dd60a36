# SPDX-License-Identifier: GPL-3.0-or-later
"""A module without an optimizer, whose parameters are never written."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
for step in range(20):
    inputs = torch.randn(32, 8)
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    model.zero_grad()
    loss.backward()  # <- here
    for weight in model.parameters():
        changed = weight.data.clone() if mistake else weight.data
        changed -= 0.1 * weight.grad
