# SPDX-License-Identifier: MIT
"""Weights of all layers with a standard deviation of 0.001."""
import sys

import torch

torch.manual_seed(0)
layers = [torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)]
net = torch.nn.Sequential(*layers)
for layer in layers[::2]:
    if "mistake" in sys.argv:
        torch.nn.init.normal_(layer.weight, std=1e-3)  # <- here
optimizer = torch.optim.SGD(net.parameters(), 0.05)
for step in range(12):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    (net(x) - x[:, :2].sum(1, keepdim=True) - 0.1 * torch.randn(32, 1)).square().mean().backward()
    optimizer.step()
