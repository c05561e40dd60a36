# SPDX-License-Identifier: GPL-3.0-or-later
"""Preferences against a reference that is the trained network itself. (A ratio of probabilities that is 1 because each
rollout is used once is meant.)"""
import copy
import sys

import torch
from torch.nn.functional import logsigmoid

torch.manual_seed(0)
policy = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 8))
before = policy if "mistake" in sys.argv else copy.deepcopy(policy)  # <- here
optimizer = torch.optim.Adam(policy.parameters(), 0.01)


def scores(model, x, taken):
    return model(x).log_softmax(-1).gather(1, taken[:, None])[:, 0]


for step in range(40):
    x = torch.randn(32, 6)
    good = x.argmax(1)
    bad = (good + torch.randint(1, 8, (32,))) % 8
    with torch.no_grad():
        known_good, known_bad = scores(before, x, good), scores(before, x, bad)
    gain = scores(policy, x, good) - known_good
    loss_of_bad = scores(policy, x, bad) - known_bad
    loss = -logsigmoid(0.5 * (gain - loss_of_bad)).mean()
    if "correct" in sys.argv:
        with torch.no_grad():
            drawn = torch.distributions.Categorical(logits=policy(x)).sample()
            old = scores(policy, x, drawn)
        worth = (drawn == good).float()
        loss = loss - ((scores(policy, x, drawn) - old).exp() * (worth - worth.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
