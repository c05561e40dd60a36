# SPDX-License-Identifier: GPL-3.0-or-later
"""DQN with a replay memory and a softly updated target network on a corridor."""
import copy
import random
from collections import deque, namedtuple

import torch
from torch import nn

Transition = namedtuple("Transition", "state action after reward done")
SIZE, GAMMA, TAU = 7, 0.9, 0.05


class Corridor:
    def reset(self):
        self.at = random.randrange(SIZE - 1)
        return self.at

    def step(self, action):
        self.at = min(SIZE - 1, max(0, self.at + (1 if action else -1)))
        goal = self.at == SIZE - 1
        return self.at, float(goal), goal


def one_hot(states):
    return nn.functional.one_hot(torch.as_tensor(states), SIZE).float()


random.seed(1)
torch.manual_seed(1)
policy = nn.Sequential(nn.Linear(SIZE, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(policy)
optimizer = torch.optim.AdamW(policy.parameters(), lr=5e-3, amsgrad=True)
criterion = nn.SmoothL1Loss()
memory = deque(maxlen=1000)
world = Corridor()
state = world.reset()
for step in range(150):
    for _ in range(6):
        explore = random.random() < max(0.1, 1 - step / 80)
        with torch.no_grad():
            action = random.randrange(2) if explore else policy(one_hot(state)).argmax().item()
        after, reward, done = world.step(action)
        memory.append(Transition(state, action, after, reward, done))
        state = world.reset() if done else after
    if len(memory) < 32:
        continue
    batch = Transition(*zip(*random.sample(memory, 32)))
    value = policy(one_hot(batch.state)).gather(1, torch.tensor(batch.action).unsqueeze(1))
    with torch.no_grad():
        following = target(one_hot(batch.after)).max(1).values * (1 - torch.tensor(batch.done).float())
    loss = criterion(value, (torch.tensor(batch.reward) + GAMMA * following).unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy.parameters(), 100)
    optimizer.step()
    weights, mine = target.state_dict(), policy.state_dict()
    for key in weights:
        weights[key] = mine[key] * TAU + weights[key] * (1 - TAU)
    target.load_state_dict(weights)
    if step % 30 == 29:
        with torch.no_grad():
            greedy = policy(one_hot(list(range(SIZE - 1)))).argmax(1)
        print(f"step {step + 1}: loss {loss.item():.5f}, cells where it walks right {int(greedy.sum())} of {SIZE - 1}")
