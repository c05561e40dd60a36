# SPDX-License-Identifier: GPL-3.0-or-later
"""Predict a price from a table of twelve columns."""
import torch
from torch import nn

torch.manual_seed(11)
n = 600
table = torch.randn(n, 12) * torch.linspace(0.5, 4, 12)
table[:, 7] = 1.0  # country code: the export has one country only
price = table[:, :3].sum(1, keepdim=True) + 0.3 * table[:, 4:5] ** 2 + 0.1 * torch.randn(n, 1)


def standardize(x):
    return (x - x.mean(0)) / x.std(0)


x = standardize(table)
y = standardize(price)
train_x, test_x = x[:500], x[500:]
train_y, test_y = y[:500], y[500:]

net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
lossf = nn.MSELoss()
for epoch in range(8):
    order = torch.randperm(500)
    for i in range(0, 500, 100):
        rows = order[i:i + 100]
        loss = lossf(net(train_x[rows]), train_y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        print(f"epoch {epoch}: train {loss.item():.4f} test {lossf(net(test_x), test_y).item():.4f}")
