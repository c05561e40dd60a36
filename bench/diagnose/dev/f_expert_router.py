# SPDX-License-Identifier: GPL-3.0-or-later
"""A mixture of four linear experts, one chosen per row, on data with four regimes."""
import torch
import torch.nn.functional as F
from torch import nn


class Mixture(nn.Module):
    def __init__(self, features, experts):
        super().__init__()
        self.router = nn.Linear(features, experts)
        self.router.bias.data[0] = 4.0
        self.experts = nn.ModuleList(nn.Linear(features, 3) for _ in range(experts))
        self.load = torch.zeros(experts)

    def forward(self, x):
        gate = self.router(x).softmax(-1)
        choice = gate.argmax(-1)
        self.load = torch.bincount(choice, minlength=len(self.experts)) / len(x)
        out = x.new_zeros(len(x), 3)
        for i, expert in enumerate(self.experts):
            rows = (choice == i).nonzero(as_tuple=True)[0]
            if len(rows):
                out = out.index_add(0, rows, gate[rows, i, None] * expert(x[rows]))
        return out


torch.manual_seed(15)
centres = torch.randn(4, 8) * 2
maps = torch.randn(4, 8, 3)
model = Mixture(8, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
for step in range(120):
    regime = torch.randint(0, 4, (128,))
    x = centres[regime] + torch.randn(128, 8)
    y = torch.einsum("nf,nfo->no", x, maps[regime])
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        print(f"step {step + 1}: loss {loss.item():.3f}, load {[round(v, 2) for v in model.load.tolist()]}")
