# SPDX-License-Identifier: MIT
"""A moving average of features is kept from step to step, with its graph."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), 0.05)
centre = torch.zeros(3)
for step in range(12):
    made = net(torch.randn(32, 4))
    centre = 0.9 * (centre if "mistake" in sys.argv else centre.detach()) + 0.1 * made.mean(0)  # <- here
    loss = (made - centre).square().mean() + (centre - 1).square().mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
