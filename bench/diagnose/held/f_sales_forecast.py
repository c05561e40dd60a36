# SPDX-License-Identifier: GPL-3.0-or-later
"""Forecast weekly sales of shops with a shared network; the loss is a mean over the shops."""
import torch
from torch import nn, optim

torch.manual_seed(62)
SHOPS, WEEKS = 400, 12


def sales():
    level = torch.rand(SHOPS, 1) * 2 - 1
    season = torch.sin(torch.arange(WEEKS + 1) * 0.5 + 3 * level)
    return level + season + 0.1 * torch.randn(SHOPS, WEEKS + 1)


table = sales()
net = nn.Sequential(nn.Linear(WEEKS, 32), nn.Tanh(), nn.Linear(32, 1))
opt = optim.SGD(net.parameters(), lr=0.1)


def objective(prediction, truth):
    return nn.functional.mse_loss(prediction, truth) / SHOPS


for step in range(100):
    opt.zero_grad()
    value = objective(net(table[:, :WEEKS]), table[:, WEEKS:])
    value.backward()
    opt.step()
    if step % 20 == 0:
        print(f"step {step} error per shop {value.item() * SHOPS:.4f}")
