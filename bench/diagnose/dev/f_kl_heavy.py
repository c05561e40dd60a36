# SPDX-License-Identifier: GPL-3.0-or-later
"""A variational autoencoder of 8x8 bar images."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class BarVAE(nn.Module):
    def __init__(self, latent=6):
        super().__init__()
        self.enc = nn.Linear(64, 64)
        self.stats = nn.Linear(64, 2 * latent)
        self.dec = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, 64))

    def encode(self, x):
        return self.stats(F.relu(self.enc(x))).chunk(2, dim=-1)

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
        return self.dec(z), mu, logvar


def bars(count):
    images = torch.zeros(count, 8, 8)
    where = torch.randint(0, 16, (count,))
    for image, k in zip(images, where.tolist()):
        if k < 8:
            image[k] = 1
        else:
            image[:, k - 8] = 1
    return images.flatten(1)


def elbo(x, out, mu, logvar):
    reconstruction = F.binary_cross_entropy_with_logits(out, x)
    divergence = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
    return reconstruction, divergence


def run():
    torch.manual_seed(4)
    vae = BarVAE()
    optimizer = torch.optim.Adam(vae.parameters(), lr=2e-3)
    for step in range(250):
        x = bars(64)
        optimizer.zero_grad()
        reconstruction, divergence = elbo(x, *vae(x))
        total = reconstruction + divergence
        total.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"{step} rec {reconstruction.item():.4f} kl {divergence.item():.5f}")


run()
