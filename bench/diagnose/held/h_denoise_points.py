# SPDX-License-Identifier: GPL-3.0-or-later
"""Diffusion model of points on two moons: predict the noise that was added."""
import torch
from torch import nn

torch.manual_seed(107)
STEPS = 50
betas = torch.linspace(1e-4, 0.15, STEPS)
kept = torch.cumprod(1 - betas, 0)


def moons(n):
    a = torch.rand(n) * 3.1416
    up = torch.rand(n) < 0.5
    x = torch.where(up, a.cos(), 1 - a.cos())
    y = torch.where(up, a.sin(), 0.5 - a.sin())
    return torch.stack([x - 0.5, y - 0.25], 1) * 1.4 + 0.03 * torch.randn(n, 2)


class Noise(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(STEPS, 16)
        self.net = nn.Sequential(nn.Linear(18, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 2))
        # the first prediction is zero noise
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], 1))


model = Noise()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
recent = []
for step in range(200):
    x0, t, eps = moons(128), torch.randint(0, STEPS, (128,)), torch.randn(128, 2)
    a = kept[t].unsqueeze(1)
    loss = nn.functional.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * eps, t), eps)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent.append(loss.item())
    if step % 40 == 39:
        print(f"step {step + 1} loss {sum(recent[-40:]) / 40:.4f}")
