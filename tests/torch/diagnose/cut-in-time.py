# SPDX-License-Identifier: GPL-3.0-or-later
"""A state that is detached at each time step."""
import sys

import torch
from torch import nn

mistake = "mistake" in sys.argv
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.last = nn.GRUCell(1, 16), nn.Linear(16, 3)

    def forward(self, x):
        h = x.new_zeros(len(x), 16)
        for time in range(8):
            if mistake:
                h = h.detach()  # <- here
            h = self.cell(x[:, time:time + 1], h)
        return self.last(h)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    inputs = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(inputs), inputs[:, :3].argmax(1)).backward()
    optimizer.step()
