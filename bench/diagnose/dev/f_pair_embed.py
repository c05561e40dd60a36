# SPDX-License-Identifier: GPL-3.0-or-later
"""Embed noisy recordings so that two of the same speaker lie close together."""
import torch
from torch import nn

torch.manual_seed(23)
speakers = torch.randn(30, 24)
encoder = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
optimizer = torch.optim.Adam(encoder.parameters(), lr=3e-3)


def record(who):
    return speakers[who] + 0.4 * torch.randn(len(who), 24)


for step in range(1, 101):
    who = torch.randperm(30)
    view_a, view_b = record(who), record(who)
    left, right = encoder(view_a), encoder(view_b)
    loss = (left - right).pow(2).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        with torch.no_grad():
            a, b = encoder(record(torch.arange(30))), encoder(record(torch.arange(30)))
            hit = (torch.cdist(a, b).argmin(1) == torch.arange(30)).float().mean().item()
        print(f"step {step}: loss {loss.item():.5f}, spread {a.std(0).mean().item():.4f}, speaker found {hit:.2f}")
