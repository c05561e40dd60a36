# SPDX-License-Identifier: GPL-3.0-or-later
"""A small GAN learns a cloud of points."""
import torch
from torch import nn

torch.manual_seed(53)


def noise(count):
    return torch.randn(1, 6).expand(count, 6)


def cloud(count):
    return torch.randn(count, 2) @ torch.tensor([[0.7, 0.2], [0.0, 0.4]]) + torch.tensor([1.0, 1.5])


generator = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=5e-3, betas=(0.5, 0.99))
d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=5e-3, betas=(0.5, 0.99))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
for step in range(150):
    fake = generator(noise(64))
    d_loss = bce(discriminator(cloud(64)), ones) + bce(discriminator(fake.detach()), zeros)
    d_optimizer.zero_grad()
    d_loss.backward()
    d_optimizer.step()
    g_loss = bce(discriminator(fake), ones)
    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
    if step % 50 == 49:
        with torch.no_grad():
            samples = generator(noise(200))
        spread = [round(v, 3) for v in samples.std(0).tolist()]
        print(f"step {step + 1}: D {d_loss.item():.3f} G {g_loss.item():.3f}, spread of the samples {spread}")
