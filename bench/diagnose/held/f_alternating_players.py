# SPDX-License-Identifier: GPL-3.0-or-later
"""Adversarial features: a predictor and an adversary take turns."""
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(74)


def switch(module, on):
    for p in module.parameters():
        p.requires_grad_(on)


encoder = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 6))
predictor, adversary = nn.Linear(6, 2), nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
main_opt = torch.optim.Adam([*encoder.parameters(), *predictor.parameters()], lr=5e-3)
adv_opt = torch.optim.Adam(adversary.parameters(), lr=1e-2)


def people(n=128):
    x = torch.randn(n, 12)
    group = (x[:, 0] > 0).long()
    return x, (x[:, 1] + 0.7 * x[:, 0] > 0).long(), group


for turn in range(60):
    x, y, group = people()
    guess = adversary(encoder(x).detach())
    adv_loss = F.cross_entropy(guess, group)
    adv_opt.zero_grad()
    if adv_loss.requires_grad:
        adv_loss.backward()
        adv_opt.step()

    switch(adversary, False)
    code = encoder(x)
    loss = F.cross_entropy(predictor(code), y) - 0.3 * F.cross_entropy(adversary(code), group)
    main_opt.zero_grad()
    loss.backward()
    main_opt.step()
    if turn % 10 == 9:
        right = (guess.argmax(1) == group).float().mean().item()
        print(f"turn {turn + 1} main loss {loss.item():.4f} adversary loss {adv_loss.item():.4f} accuracy {right:.3f}")
