# SPDX-License-Identifier: GPL-3.0-or-later
"""Train a classifier whose feature extractor runs in half precision."""
import torch
from torch import nn

torch.manual_seed(21)
x = torch.randn(300, 64) * torch.rand(300, 1) * 40
y = (x[:, :8].sum(1) > 0).long()


class HalfNorm(nn.Module):
    """Scale each row to unit length."""

    def forward(self, x):
        length = (x * x).sum(dim=1, keepdim=True)
        return x * torch.rsqrt(length + 1e-3)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(64, 64, bias=False)
        self.norm = HalfNorm()
        self.head = nn.Linear(64, 2)

    def forward(self, x):
        h = self.lift(x).half()
        h = self.norm(4 * h)
        return self.head(h.float())


model = Model()
opt = torch.optim.Adam(model.parameters(), lr=0.005)
for step in range(60):
    rows = torch.randint(0, 300, (50,))
    logits = model(x[rows])
    loss = nn.functional.cross_entropy(logits, y[rows])
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 9:
        hits = (model(x).argmax(1) == y).float().mean()
        print(f"step {step + 1}: loss {loss.item():.4f} accuracy {hits.item():.3f}")
