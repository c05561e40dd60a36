# SPDX-License-Identifier: GPL-3.0-or-later
"""Actor-critic on a small grid, with an entropy bonus."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

torch.manual_seed(102)
N = 5


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(N * N, 48)
        self.actor, self.critic = nn.Linear(48, 4), nn.Linear(48, 1)

    def forward(self, s):
        h = F.relu(self.shared(s))
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


def move(place, action):
    r, c = divmod(place, N)
    dr, dc = ((-1, 0), (1, 0), (0, -1), (0, 1))[action]
    return min(max(r + dr, 0), N - 1) * N + min(max(c + dc, 0), N - 1)


model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
average = 20.0
for episode in range(60):
    place, log_probs, values, rewards, entropy = 0, [], [], [], 0.0
    for t in range(25):
        policy, value = model(F.one_hot(torch.tensor(place), N * N).float())
        action = policy.sample()
        log_probs.append(policy.log_prob(action))
        values.append(value)
        entropy = entropy + policy.entropy()
        place = move(place, int(action))
        rewards.append(1.0 if place == N * N - 1 else -0.04)
        if place == N * N - 1:
            break
    returns, g = [], 0.0
    for r in reversed(rewards):
        g = r + 0.97 * g
        returns.insert(0, g)
    returns, values = torch.tensor(returns), torch.stack(values)
    advantage = returns - values.detach()
    loss = -(torch.stack(log_probs) * advantage).sum() + F.smooth_l1_loss(values, returns, reduction="sum") - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average = 0.9 * average + 0.1 * len(rewards)
    if episode % 10 == 9:
        print(f"episode {episode + 1} average length {average:.2f} loss {loss.item():.3f}")
