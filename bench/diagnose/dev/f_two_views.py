# SPDX-License-Identifier: GPL-3.0-or-later
"""Contrastive pre-training: two noisy views of each of 40 prototypes."""
import torch
import torch.nn.functional as F
from torch import nn


def nt_xent(a, b, temperature):
    n = a.shape[0]
    z = F.normalize(torch.cat([a, b]), dim=1)
    sim = z @ z.t() / temperature
    partner = torch.arange(2 * n).roll(n)
    return F.cross_entropy(sim, partner)


torch.manual_seed(19)
prototypes = torch.randn(40, 32)
mixing = torch.randn(32, 32) / 4
encoder = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
projector = nn.Linear(64, 16)
optimizer = torch.optim.Adam([*encoder.parameters(), *projector.parameters()], lr=2e-3)

for step in range(80):
    chosen = torch.randperm(40)[:32]
    first = (prototypes[chosen] + 0.8 * torch.randn(32, 32)) @ mixing
    second = (prototypes[chosen] + 0.8 * torch.randn(32, 32)) @ mixing
    za, zb = projector(encoder(first)), projector(encoder(second))
    loss = nt_xent(za, zb, temperature=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        with torch.no_grad():
            cosine = F.normalize(za, dim=1) @ F.normalize(zb, dim=1).t()
            hit = (cosine.argmax(1) == torch.arange(32)).float().mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, partner found {hit:.3f}")
