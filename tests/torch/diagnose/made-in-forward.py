# SPDX-License-Identifier: GPL-3.0-or-later
"""A layer that is created in forward()."""
import sys

import torch
from torch import nn

mistake = "mistake" in sys.argv
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.gate, self.last = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, x):
        gate = self.gate
        if mistake:
            gate = nn.Linear(8, 16)  # <- here
        return self.last(torch.sigmoid(gate(x)) * torch.relu(self.first(x)))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(inputs), inputs[:, :3].argmax(1)).backward()
    optimizer.step()
