# SPDX-License-Identifier: MIT
"""The KL divergence of a VAE with the wrong sign."""
import sys

import torch

torch.manual_seed(0)
sign = 0.5 if "mistake" in sys.argv else -0.5
encoder, decoder = torch.nn.Linear(4, 4), torch.nn.Linear(2, 4)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 0.05)
x = torch.randn(64, 2) @ torch.randn(2, 4)
for step in range(200):
    mean, logvar = encoder(x).chunk(2, 1)
    made = decoder(mean + torch.randn_like(mean) * (logvar / 2).exp())
    divergence = sign * (1 + logvar - mean ** 2 - logvar.exp()).sum(1)  # <- here
    loss = ((made - x) ** 2).sum(1).mean() + divergence.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
