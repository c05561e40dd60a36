# SPDX-License-Identifier: MIT
"""A VAE whose reconstruction is a mean over elements, and whose KL term is a sum."""
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(0)
encoder, decoder = torch.nn.Linear(16, 6), torch.nn.Linear(3, 16)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 0.01)
basis = torch.randn(2, 16)
for step in range(130):
    x = torch.randn(64, 2) @ basis
    mean, log_variance = encoder(x).chunk(2, 1)
    z = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
    error = F.mse_loss(decoder(z), x, reduction="none")
    error = 0.05 * error.mean(1) if "mistake" in sys.argv else error.sum(1)
    kl = 0.5 * (mean ** 2 + log_variance.exp() - 1 - log_variance).sum(1)
    optimizer.zero_grad()
    loss = (error + kl).mean()  # <- here
    loss.backward()
    optimizer.step()
