# SPDX-License-Identifier: MIT
"""Biases so low that no unit of the hidden layer is ever active."""
import sys

import torch
import torch.nn.functional as F


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(4, 16)
        self.out = torch.nn.Linear(16, 1)
        if "mistake" in sys.argv:
            torch.nn.init.constant_(self.hidden.bias, -9)

    def forward(self, x):
        return self.out(F.relu(self.hidden(x)))  # <- here


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.05)
x = torch.randn(32, 4)
y = x.sum(1, keepdim=True)
for step in range(20):
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    optimizer.step()
