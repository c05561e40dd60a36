# SPDX-License-Identifier: GPL-3.0-or-later
"""Policy gradient with a learned baseline on a bandit whose best arm depends on the context."""
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(8)
ARMS = 4
secret = torch.randn(6, ARMS)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.Tanh())
        self.actor = nn.Linear(32, ARMS)
        self.critic = nn.Linear(32, 1)

    def forward(self, context):
        h = self.body(context)
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


agent = ActorCritic()
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-2)
mean_reward = 0.0
for episode in range(120):
    context = torch.randn(64, 6)
    policy, value = agent(context)
    action = policy.sample()
    reward = (context @ secret)[torch.arange(64), action]
    advantage = (reward - value).detach()
    log_prob = policy.log_prob(action)
    policy_loss = (log_prob * advantage).mean()
    value_loss = (reward - value).pow(2).mean()
    loss = policy_loss + 0.5 * value_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean_reward = 0.9 * mean_reward + 0.1 * reward.mean().item()
    if episode % 30 == 29:
        print(f"episode {episode + 1}: mean reward {mean_reward:.3f}, value loss {value_loss.item():.3f}")
