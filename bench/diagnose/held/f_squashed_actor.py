# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit a squashed Gaussian policy to demonstrated actions in [-1, 1]."""
import math

import torch
from torch import nn


class Actor(nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(states, 64), nn.ReLU())
        self.mean = nn.Linear(64, actions)
        self.log_std = nn.Parameter(torch.zeros(actions))

    def log_prob(self, state, action):
        mean = self.mean(self.trunk(state))
        raw = torch.atanh(action)
        normal = -0.5 * ((raw - mean) / self.log_std.exp()) ** 2 - self.log_std - 0.5 * math.log(2 * math.pi)
        jacobian = torch.log(1 - action ** 2)
        return (normal - jacobian).sum(-1)


torch.manual_seed(2)
teacher = torch.randn(10, 2)


def demonstrations(n):
    state = torch.randn(n, 10)
    return state, torch.tanh(0.9 * (state @ teacher) + 0.1 * torch.randn(n, 2))


actor = Actor(10, 2)
optimizer = torch.optim.Adam(actor.parameters(), lr=3e-3)
for update in range(80):
    state, action = demonstrations(128)
    loss = -actor.log_prob(state, action).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(actor.parameters(), 1.0)
    optimizer.step()
    if update % 10 == 0:
        print("update", update, "nll", loss.item())
