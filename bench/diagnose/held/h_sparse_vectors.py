# SPDX-License-Identifier: GPL-3.0-or-later
"""Word vectors with sparse gradients, negative sampling and two optimizers."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SkipGram(nn.Module):
    def __init__(self, words=500, dim=16):
        super().__init__()
        self.center = nn.Embedding(words, dim, sparse=True)
        self.context = nn.Embedding(words, dim, sparse=True)
        self.scale = nn.Linear(1, 1)
        nn.init.uniform_(self.center.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.context.weight)

    def forward(self, c, o, negative):
        v = self.center(c)
        good = (v * self.context(o)).sum(1, keepdim=True)
        bad = torch.bmm(self.context(negative), v.unsqueeze(2)).squeeze(2)
        return self.scale(good.reshape(-1, 1)), self.scale(bad.reshape(-1, 1))


torch.manual_seed(113)
model = SkipGram()
sparse = torch.optim.SparseAdam([model.center.weight, model.context.weight], lr=0.05)
dense = torch.optim.Adam(model.scale.parameters(), lr=0.01)
for step in range(150):
    c = (torch.rand(128).pow(3) * 500).long()
    o = (c + torch.randint(1, 4, (128,))) % 500
    good, bad = model(c, o, torch.randint(0, 500, (128, 4)))
    loss = F.softplus(-good).mean() + F.softplus(bad).mean()
    sparse.zero_grad()
    dense.zero_grad()
    loss.backward()
    sparse.step()
    dense.step()
    if step % 30 == 29:
        print(f"step {step + 1} loss {loss.item():.4f}")
