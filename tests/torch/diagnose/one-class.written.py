# SPDX-License-Identifier: MIT
"""A hand-written cross-entropy over the only output."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(64, 4)
y = (x.sum(1, keepdim=True) > 0).float()
for step in range(10):
    scores = net(x)
    if "mistake" in sys.argv:
        loss = -(torch.log_softmax(scores, dim=1) * y).mean()  # <- here
    else:
        loss = torch.nn.functional.softplus(scores * (1 - 2 * y)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
