# SPDX-License-Identifier: GPL-3.0-or-later
"""The best weights so far are loaded after each epoch."""
import copy
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
inputs = torch.randn(128, 6)
targets = inputs[:, :1] * inputs[:, 1:2]
best = copy.deepcopy(model.state_dict())
for epoch in range(8):
    for first in range(0, 128, 32):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs[first:first + 32]), targets[first:first + 32])
        loss.backward()
        optimizer.step()
    kept = copy.deepcopy(model.state_dict())
    if mistake:
        model.load_state_dict(best)  # <- here
    else:
        model.load_state_dict(kept)
