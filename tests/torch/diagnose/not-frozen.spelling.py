# SPDX-License-Identifier: MIT
"""The attribute of the parameters is misspelt."""
import sys

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
for parameter in model[0].parameters():
    if "mistake" in sys.argv:
        parameter.require_grad = False  # <- here
    else:
        parameter.requires_grad = False
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for step in range(40):
    x = torch.randn(32, 4)
    wanted = x[:, :1] * x[:, 1:2]
    optimizer.zero_grad()
    (model(x) - wanted).square().mean().backward()
    optimizer.step()
