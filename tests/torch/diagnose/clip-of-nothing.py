# SPDX-License-Identifier: GPL-3.0-or-later
"""An iterator of parameters that is used twice."""
import sys

import torch

torch.manual_seed(0)
mistake = "mistake" in sys.argv
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
parameters = model.parameters() if mistake else list(model.parameters())
optimizer = torch.optim.SGD(parameters, lr=0.1)
for step in range(20):
    inputs = torch.randn(32, 8)
    loss = torch.nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)  # <- here
    optimizer.step()
