# SPDX-License-Identifier: GPL-3.0-or-later
"""Variational autoencoder on spectra of raw counts."""
import torch
import torch.nn as nn


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(40, 64)
        self.mu, self.logvar = nn.Linear(64, 4), nn.Linear(64, 4)
        self.dec = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 40))

    def forward(self, x):
        h = torch.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.exp(logvar / 2) * torch.randn_like(mu)
        return self.dec(z), mu, logvar


def elbo(recon, x, mu, logvar):
    rec = ((recon - x) ** 2).sum(1)
    kl = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum(1)
    return (rec + kl).mean()


torch.manual_seed(54)
channel = torch.arange(40).float()
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(60):
    peak = 5 + 30 * torch.rand(64, 1)
    counts = torch.poisson(900 * torch.exp(-((channel - peak) ** 2) / 20))
    recon, mu, logvar = model(counts)
    loss = elbo(recon, counts, mu, logvar)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4g}")
