# SPDX-License-Identifier: MIT
"""A block that keeps its input, and does not add it."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.norm = torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)

    def forward(self, x):
        identity = x
        x = torch.tanh(self.mix(self.norm(x)))
        return x + identity


class Forgetful(Block):
    def forward(self, x):
        identity = x  # <- here
        x = torch.tanh(self.mix(self.norm(x)))
        return x


torch.manual_seed(0)
kind = Forgetful if MISTAKE else Block
net = torch.nn.Sequential(torch.nn.Linear(4, 8), kind(), kind(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    x = torch.randn(32, 4)
    loss = F.mse_loss(net(x), (x * x).sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
