# SPDX-License-Identifier: GPL-3.0-or-later
"""A Wasserstein GAN with gradient penalty learns a slanted cloud of points."""
import torch
from torch import autograd, nn

torch.manual_seed(10)


def cloud(count):
    return torch.randn(count, 2) @ torch.tensor([[0.6, 0.3], [0.0, 0.2]]) + torch.tensor([1.0, -0.5])


generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=7e-4, betas=(0.0, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))


def penalty(real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    gradient, = autograd.grad(critic(between).sum(), between, create_graph=True)
    return (gradient.norm(dim=1) - 1).square().mean()


for step in range(300):
    real = cloud(128)
    fake = generator(torch.randn(128, 4)).detach()
    loss_c = critic(fake).mean() - critic(real).mean() + 2 * penalty(real, fake)
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()
    if step % 2 == 1:
        loss_g = -critic(generator(torch.randn(128, 4))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
    if step % 60 == 59:
        with torch.no_grad():
            off = torch.cdist(generator(torch.randn(400, 4)), cloud(400)).min(1).values.mean().item()
        print(f"step {step + 1}: critic {loss_c.item():.3f}, generator {loss_g.item():.3f}, off the cloud {off:.3f}")
