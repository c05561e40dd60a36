# SPDX-License-Identifier: GPL-3.0-or-later
"""A diffusion model of points on two moons; an exponential average of the weights draws the samples."""
import copy
import math

import torch
from torch import nn

STEPS = 40
beta = torch.linspace(1e-3, 0.2, STEPS)
alpha_bar = torch.cumprod(1 - beta, dim=0)


def moons(count):
    angle = math.pi * torch.rand(count)
    upper = torch.rand(count) < 0.5
    x = torch.where(upper, angle.cos(), 1 - angle.cos())
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin())
    return torch.stack([x - 0.5, y - 0.25], dim=1) + 0.05 * torch.randn(count, 2)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(STEPS, 16)
        self.net = nn.Sequential(nn.Linear(18, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], dim=1))


@torch.no_grad()
def sample(model, count):
    x = torch.randn(count, 2)
    for t in reversed(range(STEPS)):
        noise = model(x, torch.full((count,), t))
        x = (x - beta[t] / (1 - alpha_bar[t]).sqrt() * noise) / (1 - beta[t]).sqrt()
        if t:
            x = x + beta[t].sqrt() * torch.randn_like(x)
    return x


torch.manual_seed(0)
model = Denoiser()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for step in range(200):
    x0 = moons(256)
    t = torch.randint(0, STEPS, (256,))
    noise = torch.randn_like(x0)
    a = alpha_bar[t].unsqueeze(1)
    loss = (model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for p, q in zip(average.parameters(), model.parameters()):
            p.lerp_(q, 0.05)
    if step % 50 == 49:
        distance = torch.cdist(sample(average, 200), moons(500)).min(1).values.mean().item()
        print(f"step {step + 1}: loss {loss.item():.4f}, distance of samples to data {distance:.4f}")
