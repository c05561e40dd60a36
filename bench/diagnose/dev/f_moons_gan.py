# SPDX-License-Identifier: GPL-3.0-or-later
"""A GAN on two moons."""
import math
import torch
import torch.nn as nn

torch.manual_seed(10)
nz, bs = 8, 128
netG = nn.Sequential(nn.Linear(nz, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
netD = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1), nn.Sigmoid())
criterion = nn.BCELoss()
optD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
real_label, fake_label = 1.0, 0.0

def moons(n):
    a = torch.rand(n) * math.pi
    up = torch.stack([a.cos(), a.sin()], 1)
    down = torch.stack([1 - a.cos(), 0.5 - a.sin()], 1)
    pick = (torch.rand(n, 1) > 0.5).float()
    return pick * up + (1 - pick) * down + 0.05 * torch.randn(n, 2)

for i in range(200):
    netD.zero_grad()
    label = torch.full((bs,), real_label)
    output = netD(moons(bs)).view(-1)
    errD_real = criterion(output, label)
    errD_real.backward()
    noise = torch.randn(bs, nz)
    fake = netG(noise)
    label.fill_(fake_label)
    output = netD(fake.detach()).view(-1)
    errD_fake = criterion(output, label)
    errD_fake.backward()
    optD.step()

    netG.zero_grad()
    output = netD(fake).view(-1)
    errG = criterion(output, label)
    errG.backward()
    optG.step()
    if i % 40 == 0:
        print(f"[{i}/200] Loss_D: {errD_real.item() + errD_fake.item():.4f} Loss_G: {errG.item():.4f} D(G(z)): {output.mean().item():.3f}")
