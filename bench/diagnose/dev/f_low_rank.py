# SPDX-License-Identifier: GPL-3.0-or-later
"""Adapt a frozen network to a second task with hand-written low-rank adapters."""
import torch
import torch.nn.functional as F
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8.0):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.zeros(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + (x @ self.lora_a.t() @ self.lora_b.t()) * self.scale


def fit(model, x, y, steps, lr):
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trainable, lr=lr)
    for step in range(steps):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 14:
            print(f"  step {step + 1} loss {loss.item():.4f}")
    return (model(x).argmax(1) == y).float().mean().item()


torch.manual_seed(40)
x = torch.randn(400, 16)
first_task = (x @ torch.randn(16, 4)).argmax(1)
second_task = (x @ torch.randn(16, 4)).argmax(1)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
print("pre-training")
print(f"accuracy {fit(model, x, first_task, 30, 1e-2):.3f}")
for i in (0, 2, 4):
    model[i] = LoRALinear(model[i])
print("adaptation")
print(f"accuracy {fit(model, x, second_task, 30, 1e-2):.3f}")
