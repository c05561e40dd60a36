# SPDX-License-Identifier: GPL-3.0-or-later
"""A variational autoencoder on binary glyphs of 64 pixels."""
import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(64, 64)
        self.mu = nn.Linear(64, 6)
        self.logvar = nn.Linear(64, 6)
        self.dec = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64))

    def encode(self, x):
        h = torch.relu(self.enc(x))
        return self.mu(h), self.logvar(h)

    def loss(self, x):
        mu, logvar = self.encode(x)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        logits = self.dec(z)
        reconstruction = F.binary_cross_entropy_with_logits(logits, x)
        kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return reconstruction + kl


torch.manual_seed(90)
patterns = (torch.rand(12, 64) < 0.4).float()
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(150):
    clean = patterns[torch.randint(0, 12, (64,))]
    x = (clean + (torch.rand(64, 64) < 0.03).float()) % 2
    loss = model.loss(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        with torch.no_grad():
            rebuilt = (model.dec(model.encode(x)[0]) > 0).float()
        print(f"step {step + 1}: loss {loss.item():.3f}, pixels rebuilt {(rebuilt == clean).float().mean():.3f}")
