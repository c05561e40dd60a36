# SPDX-License-Identifier: GPL-3.0-or-later
"""Variational autoencoder with an annealed Kullback-Leibler term."""
import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, size=36):
        super().__init__()
        self.fc1 = nn.Linear(size, 64)
        self.fc21, self.fc22 = nn.Linear(64, 4), nn.Linear(64, 4)
        self.fc3, self.fc4 = nn.Linear(4, 64), nn.Linear(64, size)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        mu, logvar = self.fc21(h), self.fc22(h)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu) if self.training else mu
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar


def loss_function(recon, x, mu, logvar, beta):
    bce = F.binary_cross_entropy(recon, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + beta * kld


torch.manual_seed(4)
bars = torch.zeros(12, 6, 6)
for k in range(6):
    bars[k, k], bars[6 + k, :, k] = 1.0, 1.0
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(150):
    x = bars[torch.randint(0, 12, (64,))].flatten(1)
    beta = min(1.0, step / 100)
    model.train()
    recon, mu, logvar = model(x)
    loss = loss_function(recon, x, mu, logvar, beta)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        model.eval()
        with torch.no_grad():
            error = F.mse_loss(model(x)[0], x).item()
        print(f"step {step + 1} beta {beta:.2f} loss per picture {loss.item() / 64:.3f} reconstruction error {error:.4f}")
