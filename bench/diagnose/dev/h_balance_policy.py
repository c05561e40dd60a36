# SPDX-License-Identifier: GPL-3.0-or-later
"""REINFORCE: keep a pole upright in a small simulation."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

torch.manual_seed(7)


class Pole:
    """An inverted pendulum that is pushed to the left or to the right."""

    def reset(self):
        self.angle, self.speed, self.age = float(torch.rand(1) - 0.5) * 0.2, 0.0, 0
        return self.state()

    def state(self):
        return torch.tensor([4 * self.angle, 12 * self.speed])

    def step(self, action):
        self.speed += 0.05 * self.angle + (0.03 if action == 1 else -0.03)
        self.angle += self.speed
        self.age += 1
        return self.state(), 1.0, abs(self.angle) > 0.8 or self.age >= 40


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1, self.dropout, self.affine2 = nn.Linear(2, 32), nn.Dropout(0.1), nn.Linear(32, 2)

    def forward(self, x):
        return F.softmax(self.affine2(F.relu(self.dropout(self.affine1(x)))), dim=-1)


policy, world = Policy(), Pole()
optimizer = torch.optim.Adam(policy.parameters(), lr=2e-2)
eps, running = torch.finfo(torch.float32).eps, 8.0
for episode in range(120):
    state, log_probs, rewards, done = world.reset(), [], [], False
    while not done:
        m = Categorical(policy(state))
        action = m.sample()
        log_probs.append(m.log_prob(action))
        state, reward, done = world.step(action.item())
        rewards.append(reward)
    returns, total = [], 0.0
    for r in reversed(rewards):
        total = r + 0.95 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    optimizer.zero_grad()
    loss = torch.stack([-p * r for p, r in zip(log_probs, returns)]).sum()
    loss.backward()
    optimizer.step()
    running = 0.9 * running + 0.1 * len(rewards)
    if episode % 20 == 19:
        print(f"Episode {episode + 1}\tlast length {len(rewards)}\taverage length {running:.2f}")
