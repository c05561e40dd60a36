# SPDX-License-Identifier: MIT
"""A loader that shuffles in the same way in each epoch."""
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
x = torch.randn(64, 4)
data = TensorDataset(x, x.square().sum(1, keepdim=True))
net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for epoch in range(6):
    order = torch.Generator().manual_seed(7 if MISTAKE else epoch)  # <- here
    for x, y in DataLoader(data, 8, shuffle=True, generator=order):
        loss = (net(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
