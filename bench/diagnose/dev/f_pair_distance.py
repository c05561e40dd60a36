# SPDX-License-Identifier: GPL-3.0-or-later
"""Train an embedding so that two views of one item are near and views of different items far."""
import torch
from torch import nn

torch.manual_seed(3)
items = torch.randn(64, 20)


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 8))

    def forward(self, x):
        return self.body(x)


def distance(a, b):
    return ((a - b) ** 2).sum(dim=1).sqrt()


def contrastive(a, b, same, margin=2.0):
    d = distance(a, b)
    return (same * d ** 2 + (1 - same) * torch.relu(margin - d) ** 2).mean()


def pairs(step):
    left = torch.randint(0, 64, (32,))
    same = (torch.rand(32) < 0.5).float()
    right = torch.where(same.bool(), left, torch.randint(0, 64, (32,)))
    # every fifth batch shows the clean items, the others show noisy copies
    noise = 0.0 if step % 5 == 4 else 0.1
    return items[left] + noise * torch.randn(32, 20), items[right] + noise * torch.randn(32, 20), same


net = Embed()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(40):
    a, b, same = pairs(step)
    loss = contrastive(net(a), net(b), same)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 4 == 3:
        print(f"step {step + 1} loss {loss.item():.4f}")
