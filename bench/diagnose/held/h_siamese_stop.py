# SPDX-License-Identifier: GPL-3.0-or-later
"""SimSiam: no negatives, a predictor and a stop-gradient; the loss runs from 0 down to -1."""
import torch
import torch.nn.functional as F
from torch import nn


class SimSiam(nn.Module):
    def __init__(self, inputs=20, width=64, out=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(inputs, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Linear(width, out, bias=False), nn.BatchNorm1d(out, affine=False))
        self.predictor = nn.Sequential(
            nn.Linear(out, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, out))

    def forward(self, a, b):
        za, zb = self.encoder(a), self.encoder(b)
        return self.predictor(za), self.predictor(zb), za.detach(), zb.detach()


torch.manual_seed(97)
kinds = 1.5 * torch.randn(10, 20)
model = SimSiam()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
for step in range(100):
    x = kinds[torch.randint(0, 10, (128,))]
    pa, pb, za, zb = model(x + torch.randn_like(x), x + torch.randn_like(x))
    loss = -(F.cosine_similarity(pa, zb).mean() + F.cosine_similarity(pb, za).mean()) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 24:
        model.eval()
        with torch.no_grad():
            kind = torch.arange(400) % 10
            z = F.normalize(model.encoder(kinds[kind] + torch.randn(400, 20)), dim=1)
            nearest = (z[200:] @ z[:200].t()).argmax(1)
            right = (kind[:200][nearest] == kind[200:]).float().mean().item()
            spread = z.std(0).mean().item()
        model.train()
        print(f"step {step + 1}: loss {loss.item():.4f}, nearest neighbour right {right:.3f}, spread {spread:.3f}")
