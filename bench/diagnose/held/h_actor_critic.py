# SPDX-License-Identifier: GPL-3.0-or-later
"""Actor-critic on a gridworld with a shared trunk; the policy loss is often negative."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical

SIDE = 4
MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine = nn.Linear(SIDE * SIDE, 48)
        self.action_head = nn.Linear(48, 4)
        self.value_head = nn.Linear(48, 1)

    def forward(self, cells):
        h = F.relu(self.affine(F.one_hot(cells, SIDE * SIDE).float()))
        return F.softmax(self.action_head(h), dim=-1), self.value_head(h).squeeze(-1)


def walk(model, limit=20):
    row, column, saved, rewards = 0, 0, [], []
    for _ in range(limit):
        probability, value = model(torch.tensor(row * SIDE + column))
        choice = Categorical(probability)
        action = choice.sample()
        saved.append((choice.log_prob(action), value))
        down, right = MOVES[action]
        row, column = min(SIDE - 1, max(0, row + down)), min(SIDE - 1, max(0, column + right))
        goal = row == column == SIDE - 1
        rewards.append(1.0 if goal else -0.05)
        if goal:
            break
    return saved, rewards


torch.manual_seed(543)
model = Policy()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
running = 20.0
for episode in range(80):
    saved, rewards = walk(model)
    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + 0.95 * total
        returns.insert(0, total)
    policy_losses, value_losses = [], []
    for (log_prob, value), wanted in zip(saved, returns):
        policy_losses.append(-log_prob * (wanted - value.item()))
        value_losses.append(F.smooth_l1_loss(value, torch.tensor(wanted)))
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running = 0.9 * running + 0.1 * len(rewards)
    if episode % 20 == 19:
        print(f"episode {episode + 1}: steps {len(rewards)}, running {running:.1f}, loss {loss.item():.3f}")
