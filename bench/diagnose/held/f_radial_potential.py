# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit a radial potential sin(kr)/r to samples, the origin included."""
import torch

torch.manual_seed(1)
grid = torch.linspace(0, 6, 121)
target = torch.where(grid > 0, torch.sin(1.7 * grid) / grid.clamp(min=1e-6), torch.tensor(1.7)) * 0.8

centre = torch.zeros(1, requires_grad=True)
k = torch.tensor(1.0, requires_grad=True)
amplitude = torch.tensor(0.3, requires_grad=True)


def potential(r):
    inside = k * torch.ones_like(r)
    outside = torch.sin(k * r) / r
    return amplitude * torch.where(r == 0, inside, outside)


optimizer = torch.optim.Adam([centre, k, amplitude], lr=0.03)
for step in range(120):
    r = (grid - centre).abs()
    loss = (potential(r) - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"{step:4d} {loss.item():.6f} k={k.item():.3f}")
