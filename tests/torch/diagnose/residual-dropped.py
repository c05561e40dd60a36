# SPDX-License-Identifier: MIT
"""Blocks of two branches, of which the second one replaces the input."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Linear(8, 8)
        self.feed = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8))

    def forward(self, x):
        x = x + torch.tanh(self.mix(x))
        return self.feed(x) + (0 if MISTAKE else x)  # <- here


torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), Block(), Block(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    x = torch.randn(32, 4)
    loss = F.mse_loss(net(x), (x * x).sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
