# SPDX-License-Identifier: GPL-3.0-or-later
"""An average of weights over far more steps than there are."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
average = [one.detach().clone() for one in model.parameters()]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
decay = 0.9999 if mistake else 0.9
for step in range(60):
    inputs = torch.randn(32, 8)
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for held, one in zip(average, model.parameters()):
            held.mul_(decay).add_(one, alpha=1 - decay)  # <- here
