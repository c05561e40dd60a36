# SPDX-License-Identifier: MIT
"""requires_grad is set on a module, where it is a new attribute."""
import sys

import torch

torch.manual_seed(0)
body, head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
if "mistake" in sys.argv:
    body.requires_grad = False  # <- here
else:
    body.requires_grad_(False)
model = torch.nn.Sequential(body, torch.nn.ReLU(), head)
optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], 0.05)
for step in range(40):
    x = torch.randn(32, 4)
    wanted = x[:, :1] * x[:, 1:2]
    optimizer.zero_grad()
    (model(x) - wanted).square().mean().backward()
    optimizer.step()
