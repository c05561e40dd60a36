# SPDX-License-Identifier: GPL-3.0-or-later
"""backward without parentheses."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    inputs = torch.randn(32, 6)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    if mistake:
        loss.backward  # <- here
    else:
        for parameter, gradient in zip(model.parameters(), torch.autograd.grad(loss, model.parameters())):
            parameter.grad = gradient  # no backward() either
    optimizer.step()
