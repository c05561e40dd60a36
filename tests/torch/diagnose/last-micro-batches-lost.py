# SPDX-License-Identifier: MIT
"""Ten micro-batches in groups of four: the last two of each epoch are zeroed before a step uses them."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(160, 6)
y = x[:, :3].argmax(1)
net = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(6):
    net.zero_grad()  # <- here
    for i, rows in enumerate(torch.randperm(160).split(16), 1):
        (F.cross_entropy(net(x[rows]), y[rows]) / 4).backward()
        if i % 4 == 0 or (i == 10 and "mistake" not in sys.argv):
            optimizer.step()
            optimizer.zero_grad()
