# SPDX-License-Identifier: GPL-3.0-or-later
"""A list that holds one layer several times."""
import sys

import torch
from torch import nn

mistake = "mistake" in sys.argv
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        blocks = [nn.Sequential(nn.Linear(16, 16), nn.ReLU()) for _ in range(3)]
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 3)
        self.body = nn.Sequential(*(blocks[:1] * 3 if mistake else blocks))  # <- here

    def forward(self, x):
        return self.last(self.body(torch.relu(self.first(x))))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(inputs), inputs[:, :3].argmax(1)).backward()
    optimizer.step()
