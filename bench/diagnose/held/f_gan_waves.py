# SPDX-License-Identifier: GPL-3.0-or-later
"""GAN that draws sine waves; both optimizers in one function."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(63)
T = 16


def real(n):
    t = torch.arange(T) * 0.4
    return torch.sin(t + torch.rand(n, 1) * 6.2832)


generator = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, T))
critic = nn.Sequential(nn.Linear(T, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))
opt_g = torch.optim.SGD(generator.parameters(), lr=0.05)
opt_c = torch.optim.SGD(critic.parameters(), lr=0.05)


def update(n=64):
    fake = generator(torch.randn(n, 4))
    opt_c.zero_grad()
    loss_c = F.softplus(-critic(real(n))).mean() + F.softplus(critic(fake.detach())).mean()
    loss_c.backward()
    opt_c.step()

    opt_c.zero_grad()
    loss_g = F.softplus(-critic(fake)).mean()
    loss_g.backward()
    opt_g.step()
    return loss_c.item(), loss_g.item(), fake.abs().max().item()


for step in range(200):
    c, g, peak = update()
    if step % 40 == 39:
        print(f"step {step + 1}: critic {c:.3f} generator {g:.3f} largest value {peak:.2f}")
