# SPDX-License-Identifier: GPL-3.0-or-later
"""Representations of noisy vectors by BYOL: an online network predicts a slow one."""
import copy

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.BatchNorm1d(h), nn.ReLU(inplace=True), nn.Linear(h, o))


class Byol:
    def __init__(self, dim=20, tau=0.98, lr=3e-3):
        self.online = nn.Sequential(mlp(dim, 64, 32), mlp(32, 64, 16))
        self.predictor = mlp(16, 32, 16)
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters():
            p.requires_grad_(False)
        self.tau = tau
        self.opt = torch.optim.Adam(list(self.online.parameters()) + list(self.predictor.parameters()), lr=lr)

    def loss(self, a, b):
        p = self.predictor(self.online(a))
        with torch.no_grad():
            t = self.target(b)
        return 2 - 2 * F.cosine_similarity(p, t, dim=-1).mean()

    @torch.no_grad()
    def update_target(self):
        for po, pt in zip(self.online.parameters(), self.target.parameters()):
            pt = self.tau * pt + (1 - self.tau) * po

    def step(self, a, b):
        l = self.loss(a, b) + self.loss(b, a)
        self.opt.zero_grad(set_to_none=True)
        l.backward()
        self.opt.step()
        self.update_target()
        return l.item()


centres = torch.randn(6, 20) * 2
x = centres[torch.randint(0, 6, (2048,))] + torch.randn(2048, 20) * 0.5
algo = Byol()
for epoch in range(6):
    tot = 0
    for idx in torch.randperm(2048).split(64):
        v1 = x[idx] + 0.3 * torch.randn(len(idx), 20)
        v2 = x[idx] * (torch.rand(len(idx), 20) > 0.2)
        tot += algo.step(v1, v2)
    print("epoch", epoch, "loss", round(tot / 32, 4))
