# SPDX-License-Identifier: GPL-3.0-or-later
"""A variational autoencoder whose KL term is annealed from 0."""
import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(49, 48)
        self.fc21, self.fc22 = nn.Linear(48, 4), nn.Linear(48, 4)
        self.fc3, self.fc4 = nn.Linear(4, 48), nn.Linear(48, 49)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        mu, logvar = self.fc21(h), self.fc22(h)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu) if self.training else mu
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar


def pictures(count):
    grid = torch.stack(torch.meshgrid(torch.arange(7.), torch.arange(7.), indexing="ij"))
    centre = torch.rand(count, 2, 1, 1) * 6
    return torch.exp(-(grid - centre).square().sum(1) / 4).flatten(1)


torch.manual_seed(1)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(120):
    model.train()
    x = pictures(64)
    rebuilt, mu, logvar = model(x)
    error = F.binary_cross_entropy(rebuilt, x, reduction="sum") / len(x)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum() / len(x)
    loss = error + min(1.0, step / 80) * 0.3 * kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        model.eval()
        with torch.no_grad():
            mse = F.mse_loss(model(x)[0], x).item()
        print(f"step {step + 1}: error {error.item():.3f}, kl {kl.item():.3f}, mse {mse:.4f}")
