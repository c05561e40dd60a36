# SPDX-License-Identifier: MIT
"""The optimizer is given the parameters of the body, and not those of the head."""
import sys

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU())
        self.head = torch.nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(0)
net = Net()
part = net.body if "mistake" in sys.argv else net
optimizer = torch.optim.SGD(part.parameters(), 0.1)  # <- here
x = torch.randn(64, 4)
y = x[:, :3].argmax(1)
for step in range(10):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
