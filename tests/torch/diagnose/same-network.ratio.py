# SPDX-License-Identifier: GPL-3.0-or-later
"""The old log-probabilities of PPO are computed again with each batch, and keep their graph."""
import sys

import torch
from torch.distributions import Normal


class Actor(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
        self.log_std = torch.nn.Parameter(torch.zeros(1))

    def evaluate(self, state, action):
        return Normal(self.mean(state), self.log_std.exp()).log_prob(action).sum(-1)


torch.manual_seed(0)
actor = Actor()
optimizer = torch.optim.Adam(actor.parameters(), 0.01)
for rollout in range(10):
    state = torch.randn(64, 3)
    with torch.no_grad():
        action = Normal(actor.mean(state), actor.log_std.exp()).sample()
        old = actor.evaluate(state, action)
    reward = -(action[:, 0] - state[:, 0]).abs()
    advantage = (reward - reward.mean()) / reward.std()
    for epoch in range(4):
        now = actor.evaluate(state, action)
        if "mistake" in sys.argv:
            old = actor.evaluate(state, action)  # <- here
        ratio = torch.exp(now - old)
        loss = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean() - 0.01 * actor.log_std.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
