# SPDX-License-Identifier: MIT
"""A branch that is computed, and that nobody reads."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv


class Both(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.last = torch.nn.Linear(4, 8), torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)

    def forward(self, x):
        left = self.left(x)
        right = self.right(x)
        return self.last(torch.tanh(left) * torch.tanh(right))


class One(Both):
    def forward(self, x):
        left = self.left(x)
        right = self.right(x)  # <- here
        return self.last(torch.tanh(left) * torch.tanh(left))


torch.manual_seed(0)
net = One() if MISTAKE else Both()
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    x = torch.randn(32, 4)
    loss = F.mse_loss(net(x), (x * x).sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
