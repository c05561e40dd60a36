# SPDX-License-Identifier: GPL-3.0-or-later
"""Wasserstein GAN with a gradient penalty on eight points in the plane."""
import math

import torch
import torch.nn as nn

torch.manual_seed(106)
corners = torch.tensor([[math.cos(k * math.pi / 4), math.sin(k * math.pi / 4)] for k in range(8)])


def real(n):
    return corners[torch.randint(0, 8, (n,))] + 0.02 * torch.randn(n, 2)


def net(a, b):
    return nn.Sequential(nn.Linear(a, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, b))


def penalty(critic, x, z):
    mix = torch.rand(len(x), 1)
    between = (mix * x + (1 - mix) * z).requires_grad_(True)
    gradient, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((gradient.norm(2, dim=1) - 1) ** 2).mean()


generator, critic = net(4, 2), net(2, 1)
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.0, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))
for step in range(150):
    for _ in range(4):
        x = real(64)
        with torch.no_grad():
            z = generator(torch.randn(64, 4))
        loss_c = critic(z).mean() - critic(x).mean() + penalty(critic, x, z)
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()
    for p in critic.parameters():
        p.requires_grad_(False)
    z = generator(torch.randn(64, 4))
    loss_g = -critic(z).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    for p in critic.parameters():
        p.requires_grad_(True)
    if step % 30 == 29:
        miss = torch.cdist(z.detach(), corners).min(1).values.mean().item()
        print(f"step {step + 1} critic {loss_c.item():.3f} mean distance to a corner {miss:.3f}")
