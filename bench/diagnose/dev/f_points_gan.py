# SPDX-License-Identifier: GPL-3.0-or-later
"""GAN that learns points on a circle."""
import torch
from torch import nn

torch.manual_seed(35)


def mlp(a, b):
    return nn.Sequential(nn.Linear(a, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, b))


def circle(n):
    angle = torch.rand(n) * 6.2832
    return torch.stack([2 * angle.cos(), 2 * angle.sin()], 1) + 0.05 * torch.randn(n, 2)


netG, netD = mlp(4, 2), mlp(2, 1)
criterion = nn.BCEWithLogitsLoss()
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
for step in range(120):
    real = circle(64)
    fake = netG(torch.randn(64, 4))
    netD.zero_grad()
    errD = criterion(netD(real), ones) + criterion(netD(fake.detach()), zeros)
    errD.backward()
    optimizerD.step()

    netG.zero_grad()
    errG = criterion(netD(fake), ones)
    errG.backward()
    optimizerG.step()
    if step % 20 == 19:
        radius = fake.detach().norm(dim=1)
        print(f"[{step + 1}] Loss_D {errD.item():.3f} Loss_G {errG.item():.3f} radius {radius.mean():.2f} +- {radius.std():.2f}")
