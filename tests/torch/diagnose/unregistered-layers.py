# SPDX-License-Identifier: MIT
"""Layers in a plain dict."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :3].argmax(1)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layers = {"first": torch.nn.Linear(6, 8), "second": torch.nn.Linear(8, 8)}
        self.layers = layers if "mistake" in sys.argv else torch.nn.ModuleDict(layers)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, data):
        for layer in self.layers.values():
            data = torch.relu(layer(data))  # <- here
        return self.head(data)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(12):
    optimizer.zero_grad()
    F.cross_entropy(net(x), y).backward()
    optimizer.step()
