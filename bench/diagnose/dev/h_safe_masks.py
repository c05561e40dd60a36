# SPDX-License-Identifier: GPL-3.0-or-later
"""Attention over sets of which some are empty; the rows without a member get a learnt vector instead."""
import torch
from torch import nn


class SetPool(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.inner = nn.Linear(5, width)
        self.score = nn.Linear(width, 1)
        self.empty = nn.Parameter(torch.zeros(width))
        self.out = nn.Linear(width, 1)

    def forward(self, x, mask):
        h = torch.relu(self.inner(x))
        score = self.score(h).squeeze(-1).masked_fill(~mask, torch.finfo(h.dtype).min)
        weight = score.softmax(-1) * mask
        pooled = (weight[..., None] * h).sum(1)
        some = mask.any(1, keepdim=True)
        return self.out(torch.where(some, pooled, self.empty)).squeeze(-1)


def log_std(x, mask):
    n = mask.sum(1).clamp(min=1)
    mean = (x[..., 0] * mask).sum(1) / n
    var = ((x[..., 0] ** 2) * mask).sum(1) / n - mean ** 2
    return 0.5 * torch.log(var.clamp(min=1e-4))


def main():
    torch.manual_seed(3)
    net = SetPool()
    opt = torch.optim.RMSprop(net.parameters(), lr=3e-3)
    for step in range(200):
        x = torch.randn(64, 6, 5)
        mask = torch.rand(64, 6) < torch.rand(64, 1)
        weight = mask.float() / mask.sum(1, keepdim=True).clamp(min=1)
        y = (x[..., 1] * weight).sum(1) + 0.3 * log_std(x, mask) + mask.any(1)
        error = net(x, mask) - y
        loss = torch.sqrt(error ** 2 + 1e-3).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(step, loss.item())


main()
