# SPDX-License-Identifier: GPL-3.0-or-later
"""An average of weights whose parts do not add up to 1."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
average = [one.detach().clone() for one in model.parameters()]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    inputs = torch.randn(32, 8)
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for held, one in zip(average, model.parameters()):
        held.data.mul_(0.9).add_(one.data, alpha=1.0 if mistake else 0.1)  # <- here
