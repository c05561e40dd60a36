# SPDX-License-Identifier: GPL-3.0-or-later
"""Proximal policy optimisation of a bandit, with the old probabilities computed again in each update."""
import sys

import torch

torch.manual_seed(0)
actor = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 3))
optimizer = torch.optim.Adam(actor.parameters(), 0.003)


def log_probability(state, action):
    return torch.distributions.Categorical(logits=actor(state)).log_prob(action)


for round_ in range(10):
    state = torch.randn(64, 4)
    with torch.no_grad():
        action = torch.distributions.Categorical(logits=actor(state)).sample()
        kept = log_probability(state, action)
    gain = (action == state[:, :3].argmax(1)).float() - 0.33
    for epoch in range(4):
        old = kept
        if "mistake" in sys.argv:
            with torch.no_grad():
                old = log_probability(state, action)
        ratio = torch.exp(log_probability(state, action) - old)  # <- here
        loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
