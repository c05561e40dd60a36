# SPDX-License-Identifier: GPL-3.0-or-later
"""DCGAN on 8x8 pictures of blobs."""
import torch
import torch.nn as nn

torch.manual_seed(3)
nz, ngf = 8, 12


def weights_init(m):
    name = m.__class__.__name__
    if "Conv" in name:
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif "BatchNorm" in name:
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


netG = nn.Sequential(
    nn.ConvTranspose2d(nz, 2 * ngf, 2, 1, 0, bias=False), nn.BatchNorm2d(2 * ngf), nn.ReLU(True),
    nn.ConvTranspose2d(2 * ngf, ngf, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf), nn.ReLU(True),
    nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False), nn.Tanh())
netD = nn.Sequential(
    nn.Conv2d(1, ngf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True),
    nn.Conv2d(ngf, 2 * ngf, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * ngf), nn.LeakyReLU(0.2, True),
    nn.Conv2d(2 * ngf, 1, 2, 1, 0, bias=False), nn.Flatten(0))
netG.apply(weights_init)
netD.apply(weights_init)
criterion = nn.BCEWithLogitsLoss()
optD = torch.optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.999))
optG = torch.optim.Adam(netG.parameters(), lr=4e-3, betas=(0.5, 0.999))
axis = torch.arange(8).float()


def real(n):
    c = 2 + 4 * torch.rand(n, 2, 1)
    d = (axis - c[:, 0])[:, :, None] ** 2 + (axis - c[:, 1])[:, None, :] ** 2
    return (2 * torch.exp(-d / 4) - 1).unsqueeze(1)


for step in range(250):
    x = real(32)
    netD.zero_grad()
    lossD = criterion(netD(x), torch.full((32,), 0.9))
    fake = netG(torch.randn(32, nz, 1, 1))
    lossD = lossD + criterion(netD(fake.detach()), torch.zeros(32))
    lossD.backward()
    optD.step()
    netG.zero_grad()
    lossG = criterion(netD(fake), torch.ones(32))
    lossG.backward()
    optG.step()
    if step % 50 == 49:
        gap = (fake.mean((0, 1)) - x.mean((0, 1))).abs().mean().item()
        print(f"[{step + 1}] Loss_D {lossD.item():.3f} Loss_G {lossG.item():.3f} distance of the mean pictures {gap:.3f}")
