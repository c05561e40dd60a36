# SPDX-License-Identifier: GPL-3.0-or-later
"""REINFORCE with normalised returns: keep a stick near the middle."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical


class Stick:
    def reset(self, generator):
        self.x = torch.randn(2, generator=generator) * 0.1
        self.age = 0
        return self.x.clone()

    def step(self, action):
        push = 0.1 if action == 1 else -0.1
        position, speed = self.x.tolist()
        speed = speed + push + 0.08 * position
        self.x = torch.tensor([position + 0.3 * speed, speed])
        self.age += 1
        return self.x.clone(), 1.0, abs(self.x[0].item()) > 1 or self.age >= 60


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(2, 32)
        self.affine2 = nn.Linear(32, 2)

    def forward(self, x):
        return F.softmax(self.affine2(torch.tanh(self.affine1(x))), dim=-1)


torch.manual_seed(543)
generator = torch.Generator().manual_seed(1)
policy, world = Policy(), Stick()
optimizer = torch.optim.Adam(policy.parameters(), lr=2e-2)
running = 10.0
for episode in range(60):
    state, done, log_probs, rewards = world.reset(generator), False, [], []
    while not done:
        choice = Categorical(policy(state))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        state, reward, done = world.step(action.item())
        rewards.append(reward)
    returns, g = [], 0.0
    for r in reversed(rewards):
        g = r + 0.95 * g
        returns.insert(0, g)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-8)
    loss = torch.stack([-p * g for p, g in zip(log_probs, returns)]).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running = 0.9 * running + 0.1 * len(rewards)
    if episode % 15 == 14:
        print(f"episode {episode + 1}: length {len(rewards)}, running {running:.1f}, loss {loss.item():.3f}")
