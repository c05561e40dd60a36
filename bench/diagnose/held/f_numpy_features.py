# SPDX-License-Identifier: GPL-3.0-or-later
"""Regress on learned features that pass through a NumPy transform."""
import numpy as np
import torch
from torch import nn

torch.manual_seed(68)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(4, 12)
        self.head = nn.Linear(12, 1)

    def forward(self, x):
        h = torch.tanh(self.lift(x))
        spectrum = np.abs(np.fft.fft(h.detach().numpy(), axis=1)).astype(np.float32)
        return self.head(torch.from_numpy(spectrum))


def target(x):
    return (x[:, :1] * x[:, 1:2]) + torch.relu(x[:, 2:3])


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(150):
    x = torch.randn(64, 4)
    loss = nn.functional.smooth_l1_loss(net(x), target(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        frozen = net.lift.weight.grad is None
        print(f"step {step + 1} loss {loss.item():.4f}")
