# SPDX-License-Identifier: GPL-3.0-or-later
"""Q-learning with a replay memory and a target network on a chain of states."""
import copy
import random
from collections import deque

import torch
import torch.nn as nn

torch.manual_seed(103)
random.seed(103)
CHAIN = 8
eye = torch.eye(CHAIN)
online = nn.Sequential(nn.Linear(CHAIN, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(online)
for p in target.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=5e-3)
memory = deque(maxlen=500)


def act(s, eps):
    if random.random() < eps:
        return random.randrange(2)
    with torch.no_grad():
        return int(online(eye[s]).argmax())


def learn(batch_size=32, gamma=0.9):
    s, a, r, n, done = zip(*random.sample(memory, batch_size))
    q = online(eye[list(s)]).gather(1, torch.tensor(a)[:, None]).squeeze(1)
    with torch.no_grad():
        goal = torch.tensor(r) + gamma * target(eye[list(n)]).max(1).values * (1 - torch.tensor(done, dtype=torch.float))
    loss = nn.functional.smooth_l1_loss(q, goal)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(online.parameters(), 1.0)
    optimizer.step()
    return loss.item()


s, updates = 0, 0
for step in range(400):
    a = act(s, max(0.1, 1 - step / 200))
    n = min(s + 1, CHAIN - 1) if a else max(s - 1, 0)
    done = n == CHAIN - 1
    memory.append((s, a, 1.0 if done else 0.0, n, done))
    s = 0 if done else n
    if len(memory) >= 100 and step % 2 == 0:
        loss, updates = learn(), updates + 1
        if updates % 10 == 0:
            target.load_state_dict(online.state_dict())
        if updates % 30 == 0:
            best = online(eye).argmax(1).float().mean().item()
            value = online(eye[0]).max().item()
            print(f"update {updates} loss {loss:.5f} states with the right action {best:.2f} value of the start {value:.3f}")
