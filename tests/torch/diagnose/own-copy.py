# SPDX-License-Identifier: MIT
"""A moving average of the weights that is the model itself."""
import copy
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 2)
average = net if "mistake" in sys.argv else copy.deepcopy(net)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(32, 4)
for step in range(20):
    optimizer.zero_grad()
    (net(x) - x[:, :2]).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        for mean, now in zip(average.parameters(), net.parameters()):
            mean.mul_(0.9).add_(now, alpha=0.1)  # <- here
