# SPDX-License-Identifier: MIT
"""One column of the input is a thousand times larger than the others."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(40):
    x = torch.randn(32, 4)
    y = (x * x).sum(1, keepdim=True)
    if MISTAKE:
        x[:, 1] = 20000 + 9000 * x[:, 1]
    loss = F.mse_loss(net(x), y)  # <- here
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
