# SPDX-License-Identifier: GPL-3.0-or-later
"""Physics-informed network: u'' = -pi^2 sin(pi x), u(0) = u(1) = 0."""
import math

import torch
from torch import nn

torch.manual_seed(16)
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
edge = torch.tensor([[0.0], [1.0]])


def residual(x):
    x = x.requires_grad_(True)
    u = net(x)
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    ddu = torch.autograd.grad(du.sum(), x, create_graph=True)[0]
    return ddu + math.pi ** 2 * torch.sin(math.pi * x)


for step in range(250):
    inside = residual(torch.rand(64, 1)).pow(2).mean()
    boundary = net(edge).pow(2).mean()
    loss = inside + 100 * boundary
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        with torch.no_grad():
            x = torch.linspace(0, 1, 50).unsqueeze(1)
            error = (net(x) - torch.sin(math.pi * x)).abs().max().item()
        print(f"step {step + 1} equation {inside.item():.4f} boundary {boundary.item():.6f} largest error {error:.4f}")
