# SPDX-License-Identifier: GPL-3.0-or-later
"""A plain GAN on two clouds of points; the discriminator's real label is 0.9."""
import torch
from torch import nn

REAL, FAKE = 0.9, 0.0


def weights_init(module):
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, 0.0, 0.2)
        nn.init.zeros_(module.bias)


def clouds(count):
    centre = torch.tensor([[2., 1.], [1., 2.]])
    return centre[torch.randint(0, 2, (count,))] + 0.2 * torch.randn(count, 2)


torch.manual_seed(999)
netG = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2)).apply(weights_init)
netD = nn.Sequential(nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))
criterion = nn.BCEWithLogitsLoss()
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))

for step in range(200):
    real = clouds(96)
    netD.zero_grad()
    err_real = criterion(netD(real).view(-1), torch.full((96,), REAL))
    err_real.backward()
    fake = netG(torch.randn(96, 8))
    err_fake = criterion(netD(fake.detach()).view(-1), torch.full((96,), FAKE))
    err_fake.backward()
    optimizerD.step()

    netG.zero_grad()
    err_g = criterion(netD(fake).view(-1), torch.full((96,), 1.0))
    err_g.backward()
    optimizerG.step()
    if step % 40 == 39:
        with torch.no_grad():
            distance = torch.cdist(netG(torch.randn(300, 8)), clouds(600)).min(1).values.mean().item()
        err_d = err_real.item() + err_fake.item()
        print(f"[{step + 1}/200] D {err_d:.3f} G {err_g.item():.3f} distance {distance:.3f}")
