# SPDX-License-Identifier: GPL-3.0-or-later
"""A softmax among the layers of a Sequential, whose forward() is PyTorch's: the line that makes it."""
import sys

import torch
from torch import nn

torch.manual_seed(0)


def layers():
    """A classifier."""
    made = [nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3)]
    if sys.argv[1] == "mistake":
        made.append(nn.Softmax(dim=1))  # <- here
    return nn.Sequential(*made)


model = layers()
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for _ in range(12):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1)).backward()
    optimizer.step()
