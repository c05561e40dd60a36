# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions of a normal distribution in several steps, whose advantage is not detached."""
import sys

import torch

torch.manual_seed(0)
actor = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
critic = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], 0.003)
for step in range(40):
    place, logs, values, rewards = torch.randn(32, 2), [], [], []
    for _ in range(4):
        actions = torch.distributions.Normal(actor(place), 0.5)
        move = actions.sample()
        logs.append(actions.log_prob(move).sum(-1))
        values.append(critic(place).squeeze(-1))
        place = place + 0.3 * move
        rewards.append(-place.square().sum(1))
    returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    advantage = returns - torch.stack(values)
    used = advantage if "mistake" in sys.argv else advantage.detach()
    policy = -(torch.stack(logs) * used).mean()  # <- here
    optimizer.zero_grad()
    (policy + 0.5 * advantage.square().mean()).backward()
    optimizer.step()
