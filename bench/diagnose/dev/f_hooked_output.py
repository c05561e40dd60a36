# SPDX-License-Identifier: GPL-3.0-or-later
"""Domain mix: the auxiliary branch is to have a smaller say in the shared features."""
import torch
from torch import nn
import torch.nn.functional as F


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(20, 48), nn.ReLU())
        self.main = nn.Linear(48, 4)
        self.aux = nn.Linear(48, 2)
        self.share = 1 // 4

    def forward(self, x):
        h = self.trunk(x)
        if h.requires_grad:
            h.register_hook(lambda g: g * self.share)
        return self.main(h), self.aux(h)


def source(n, gen):
    x = torch.randn(n, 20, generator=gen)
    return x, (x[:, :4].abs()).argmax(1), (x[:, 5] > 0).long()


torch.manual_seed(66)
gen = torch.Generator().manual_seed(66)
net = Shared()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for i in range(150):
    x, y, d = source(64, gen)
    a, b = net(x)
    loss = F.cross_entropy(a, y) + 0.1 * F.cross_entropy(b, d)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 30 == 0:
        print(i, round(loss.item(), 4), (a.argmax(1) == y).float().mean().item())
