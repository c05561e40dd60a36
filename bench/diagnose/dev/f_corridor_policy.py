# SPDX-License-Identifier: GPL-3.0-or-later
"""Learn to walk to the right end of a corridor, with advantages relative to the group of finished episodes."""
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(7)
LENGTH = 6
policy = nn.Sequential(nn.Linear(LENGTH, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)


def episode(limit=4):
    place, log_prob = 2, 0.0
    for _ in range(limit):
        state = torch.zeros(LENGTH)
        state[place] = 1.0
        choice = Categorical(logits=policy(state))
        action = choice.sample()
        log_prob = log_prob + choice.log_prob(action)
        place += 1 if action == 1 else -1
        if place in (0, LENGTH - 1):
            return log_prob, 1.0 if place else -1.0
    return None


def relative(rewards):
    return (rewards - rewards.mean()) / (rewards.std() + 1e-6)


seen = []
for number in range(80):
    finished = [e for e in (episode() for _ in range(4)) if e is not None]
    if not finished:
        continue
    log_probs = torch.stack([e[0] for e in finished])
    rewards = torch.tensor([e[1] for e in finished])
    loss = -(log_probs * relative(rewards)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen.append(rewards.mean().item())
    if not torch.isfinite(policy[0].weight).all():
        print("update", number, "the weights are not finite")
        break
    if number % 16 == 15:
        print(f"update {number + 1} mean reward {sum(seen[-16:]) / len(seen[-16:]):.2f}")
