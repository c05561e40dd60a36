# SPDX-License-Identifier: GPL-3.0-or-later
"""Contrastive learning: two noisy views of an item agree, all others do not."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(108)
items = torch.randn(200, 24)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 32))
        self.project = nn.Sequential(nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return F.normalize(self.project(self.body(x)), dim=1)


def nt_xent(a, b, temperature=0.2):
    z = torch.cat([a, b])
    scores = z @ z.t() / temperature
    scores.fill_diagonal_(float("-inf"))
    n = len(a)
    positive = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(scores, positive), (scores.argmax(1) == positive).float().mean().item()


def view(x):
    return (x + 0.4 * torch.randn_like(x)) * (torch.rand_like(x) > 0.15)


model = Encoder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, weight_decay=1e-4)
for step in range(80):
    x = items[torch.randperm(200)[:64]]
    loss, top1 = nt_xent(model(view(x)), model(view(x)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 16 == 15:
        print(f"step {step + 1} loss {loss.item():.4f} top-1 {top1:.3f}")
