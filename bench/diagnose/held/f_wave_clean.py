# SPDX-License-Identifier: GPL-3.0-or-later
"""Denoise waves: a convolutional network predicts the clean signal."""
import math

import torch
from torch import nn


def sample(count):
    phase = torch.rand(count, 1) * 2 * math.pi
    speed = torch.rand(count, 1) * 3 + 1
    return torch.sin(phase + speed * torch.linspace(0, 2 * math.pi, 64)).unsqueeze(1)


def corrupt(waves):
    torch.manual_seed(0)
    return waves + 0.8 * torch.randn_like(waves)


def validate(net):
    g = torch.Generator().manual_seed(999)
    clean = sample(64)
    noisy = clean + 0.8 * torch.randn(clean.shape, generator=g)
    with torch.no_grad():
        return (net(noisy) - clean).square().mean().item()


torch.manual_seed(3)
net = nn.Sequential(
    nn.Conv1d(1, 16, 9, padding=4), nn.SiLU(),
    nn.Conv1d(16, 16, 9, padding=4), nn.SiLU(),
    nn.Flatten(), nn.Linear(16 * 64, 64), nn.Unflatten(1, (1, 64)))
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
for step in range(1, 121):
    clean = sample(32)
    noisy = corrupt(clean)
    loss = (net(noisy) - clean).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(f"step {step}: train {loss.item():.4f}, new noise {validate(net):.4f}")
