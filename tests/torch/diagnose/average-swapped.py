# SPDX-License-Identifier: GPL-3.0-or-later
"""The decay of an average and its rest are swapped."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
average = [one.detach().clone() for one in model.parameters()]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
decay = 0.01 if mistake else 0.99
average = dict(zip(model.state_dict(), average))
for step in range(220):
    inputs = torch.randn(32, 8)
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for name, value in model.state_dict().items():
        average[name] = decay * average[name] + (1 - decay) * value  # <- here
