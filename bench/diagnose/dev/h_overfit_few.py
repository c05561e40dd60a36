# SPDX-License-Identifier: GPL-3.0-or-later
"""Few noisy examples: the training loss goes to 0 and the validation loss rises, as it does in practice."""
import torch
from torch import nn

torch.manual_seed(18)
w = torch.randn(20)


def take(n):
    x = torch.randn(n, 20)
    y = ((x @ w) + 3.0 * torch.randn(n) > 0).long()
    return x, y


train_x, train_y = take(200)
val_x, val_y = take(200)
net = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
best, best_loss = None, 1e9
for epoch in range(30):
    for rows in torch.randperm(200).split(25):
        loss = nn.functional.cross_entropy(net(train_x[rows]), train_y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        val = nn.functional.cross_entropy(net(val_x), val_y).item()
    if val < best_loss:
        best_loss, best = val, {k: v.clone() for k, v in net.state_dict().items()}
    if epoch % 5 == 0:
        print(epoch, loss.item(), val)
net.load_state_dict(best)
