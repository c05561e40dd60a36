# SPDX-License-Identifier: GPL-3.0-or-later
"""A small diffusion model of points on a ring, evaluated with averaged weights."""
import copy, math
import torch, torch.nn as nn
torch.manual_seed(6)
T = 50
betas = torch.linspace(1e-3, 0.2, T)
abar = torch.cumprod(1 - betas, 0)


class Eps(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 2))

    def forward(self, x, t):
        a = t.float()[:, None] / T * math.pi
        return self.net(torch.cat([x, a.sin(), a.cos()], 1))


def ring(n):
    a = torch.rand(n) * 2 * math.pi
    return torch.stack([a.cos(), a.sin()], 1) + 0.05 * torch.randn(n, 2)


model = Eps()
ema = copy.deepcopy(model).requires_grad_(False)
opt = torch.optim.Adam(model.parameters(), 2e-3)


def update_ema(decay=0.9999):
    for e, p in zip(ema.parameters(), model.parameters()):
        e.data.mul_(decay).add_(p.data, alpha=1 - decay)


for step in range(250):
    x0 = ring(128)
    t = torch.randint(0, T, (128,))
    noise = torch.randn_like(x0)
    xt = abar[t].sqrt()[:, None] * x0 + (1 - abar[t]).sqrt()[:, None] * noise
    loss = ((model(xt, t) - noise) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    update_ema()
    if step % 50 == 0:
        print(step, loss.item())
with torch.no_grad():
    ema.eval()
    x0 = ring(512); t = torch.full((512,), 10); noise = torch.randn_like(x0)
    xt = abar[t].sqrt()[:, None] * x0 + (1 - abar[t]).sqrt()[:, None] * noise
    print("ema val", ((ema(xt, t) - noise) ** 2).mean().item())
