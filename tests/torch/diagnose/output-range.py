# SPDX-License-Identifier: MIT
"""A ReLU after the last layer of a regression."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 16), torch.nn.Linear(16, 1)

    def forward(self, x):
        h = self.b(torch.tanh(self.a(x)))
        if MISTAKE:
            return F.relu(h)  # <- here
        return h


net = Net()
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    x = torch.randn(32, 4)
    loss = ((net(x) - x[:, :1]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
