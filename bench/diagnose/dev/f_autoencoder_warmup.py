# SPDX-License-Identifier: GPL-3.0-or-later
"""Autoencoder on correlated vectors, with a linear warm-up of the learning rate."""
import torch
from torch import nn

torch.manual_seed(13)
mix = torch.randn(4, 32)
data = torch.randn(1024, 4) @ mix + 0.05 * torch.randn(1024, 32)

encoder = nn.Sequential(nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 4))
decoder = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 32))
params = list(encoder.parameters()) + list(decoder.parameters())
optimizer = torch.optim.AdamW(params, lr=0.05)
WARMUP = 100


def factor(step):
    return min(1, (step + 1) // WARMUP)


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
for step in range(80):
    rows = torch.randint(0, 1024, (64,))
    x = data[rows]
    loss = nn.functional.mse_loss(decoder(encoder(x)), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 20 == 0:
        print(f"step {step:3d} reconstruction {loss.item():.4f}")
