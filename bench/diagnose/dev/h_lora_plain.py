# SPDX-License-Identifier: GPL-3.0-or-later
"""Low-rank adaptation by hand: pre-train, freeze, adapt with B = 0 at the start, merge and compare."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class LoRA(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.A = nn.Parameter(torch.empty(rank, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.A), self.B)

    @torch.no_grad()
    def merge(self):
        self.base.weight += self.scale * self.B @ self.A
        return self.base


def fit(model, x, y, steps, lr):
    optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=lr)
    for step in range(steps):
        rows = torch.randint(0, len(x), (64,))
        loss = F.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 14:
            print(f"  step {step + 1}: loss {loss.item():.4f}")


torch.manual_seed(50)
x = torch.randn(600, 12)
old, new = torch.randn(12, 3), torch.randn(12, 3)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))
fit(model, x, x @ old, 45, 1e-2)
model[0], model[2] = LoRA(model[0], 4, 8), LoRA(model[2], 2, 4)
fit(model, x, x @ (old + 0.3 * new), 45, 1e-2)
with torch.no_grad():
    before = model(x)
    model[0], model[2] = model[0].merge(), model[2].merge()
    print(f"merged: largest difference {(model(x) - before).abs().max().item():.1e}")
