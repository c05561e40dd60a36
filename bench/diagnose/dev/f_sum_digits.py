# SPDX-License-Identifier: GPL-3.0-or-later
"""Predict a smooth function of ten numbers with a sparse hidden layer."""
import torch
from torch import nn


class SparseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(10, 64)
        self.hidden.bias.data.fill_(-8.0)
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        h = torch.clamp(self.hidden(x), min=0)
        return self.out(h).squeeze(-1)


def target(x):
    return x[:, :3].sum(1) + torch.sin(2 * x[:, 4]) - x[:, 7].abs()


torch.manual_seed(14)
net = SparseNet()
optimizer = torch.optim.RMSprop(net.parameters(), lr=3e-3)
history = []
for step in range(80):
    x = torch.randn(128, 10)
    error = net(x) - target(x)
    loss = error.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
    if step % 20 == 19:
        print(f"{step + 1:3d}  {sum(history[-20:]) / 20:.4f}")
