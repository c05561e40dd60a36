# SPDX-License-Identifier: MIT
"""The validation after each epoch runs in training mode, and with gradients."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)


def batch(shift=0.0):
    x = torch.randn(32, 4) + shift
    return x, x[:, :2].sum(1, keepdim=True) + 0.1 * torch.randn(32, 1)


for epoch in range(6):
    net.train()
    for _ in range(10):
        x, y = batch()
        optimizer.zero_grad()
        (net(x) - y).square().mean().backward()
        optimizer.step()
    if "mistake" not in sys.argv:
        net.eval()
    total = 0.0
    for _ in range(4):
        x, y = batch(0.5)
        total += (net(x) - y).square().mean().item()  # <- here
