# SPDX-License-Identifier: GPL-3.0-or-later
"""A mixture of experts with a noisy top-2 router and a balancing loss."""
import torch
import torch.nn.functional as F
from torch import nn


class MoE(nn.Module):
    def __init__(self, width, experts, k=2):
        super().__init__()
        self.k = k
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width)) for _ in range(experts))

    def forward(self, x):
        logits = self.router(x)
        if self.training:
            logits = logits + 0.3 * torch.randn_like(logits)
        probability = logits.softmax(-1)
        top, index = probability.topk(self.k, dim=-1)
        top = top / top.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            row, slot = (index == i).nonzero(as_tuple=True)
            if len(row):
                out.index_add_(0, row, top[row, slot].unsqueeze(1) * expert(x[row]))
        used = F.one_hot(index, len(self.experts)).float().sum(1).mean(0) / self.k
        balance = len(self.experts) * (used * probability.mean(0)).sum()
        return x + out, balance, used


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.moe, self.out = nn.Linear(6, 24), MoE(24, 4), nn.Linear(24, 1)

    def forward(self, x):
        h, balance, used = self.moe(self.inp(x))
        return self.out(h), balance, used


torch.manual_seed(20)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(100):
    x = torch.randn(128, 6)
    y = torch.where(x[:, :1] > 0, x[:, 1:2] * 2, x[:, 2:3].abs() - x[:, 3:4])
    prediction, balance, used = model(x)
    loss = F.mse_loss(prediction, y) + 0.01 * balance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 24:
        print(f"step {step + 1}: loss {loss.item():.4f}, load {[round(u, 2) for u in used.tolist()]}")
