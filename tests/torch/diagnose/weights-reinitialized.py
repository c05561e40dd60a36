# SPDX-License-Identifier: GPL-3.0-or-later
"""The initialization is inside the loop over the epochs."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.002)


def initialize(module):
    if isinstance(module, torch.nn.Linear):
        torch.nn.init.xavier_uniform_(module.weight)


initialize(model[0])
for epoch in range(8):
    if mistake:
        model.apply(initialize)  # <- here
    for _ in range(4):
        inputs = torch.randn(32, 6)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1)).backward()
        optimizer.step()
        with torch.no_grad():
            model[0].weight.clamp_(-0.3, 0.3)  # as of a critic
