# SPDX-License-Identifier: GPL-3.0-or-later
"""DQN on a corridor of eight cells: walk right to the goal; features of the cells are dense."""
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(3)
torch.manual_seed(3)
CELLS, GAMMA = 8, 0.95
features = torch.randn(CELLS, 12)


def move(cell, action):
    cell = max(0, cell - 1) if action == 0 else cell + 1
    done = cell == CELLS - 1
    return cell, (1.0 if done else -0.01), done


q_net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 2))
target_net = q_net
optimizer = torch.optim.Adam(q_net.parameters(), lr=5e-3)
memory, cell, epsilon = [], 0, 1.0

for step in range(1, 301):
    for _ in range(8):
        if random.random() < epsilon:
            action = random.randrange(2)
        else:
            action = q_net(features[cell]).argmax().item()
        after, reward, done = move(cell, action)
        memory.append((cell, action, reward, after, done))
        cell = 0 if done else after
    epsilon = max(0.1, epsilon * 0.98)
    sample = random.sample(memory, min(32, len(memory)))
    cells, actions, rewards, afters, dones = (torch.tensor(column) for column in zip(*sample))
    next_state = features[afters]
    with torch.no_grad():
        best_next = target_net(next_state).max(1).values
        wanted = rewards + GAMMA * best_next * (~dones)
    value = q_net(features[cells]).gather(1, actions.unsqueeze(1)).squeeze(1)
    loss = F.smooth_l1_loss(value, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 15 == 0:
        target_net.load_state_dict(q_net.state_dict())
        with torch.no_grad():
            estimate = q_net(features).max(1).values[:-1]
        print(f"step {step}: td loss {loss.item():.5f}, values {[round(v, 2) for v in estimate.tolist()]}")
