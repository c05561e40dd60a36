# SPDX-License-Identifier: MIT
"""An actor and a critic; the advantage is not detached in the actor's loss."""
import sys

import torch

torch.manual_seed(0)
actor, critic = torch.nn.Linear(4, 3), torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], 0.02)
for step in range(20):
    state = torch.randn(64, 4)
    scores = torch.distributions.Categorical(logits=actor(state))
    action = scores.sample()
    reward = (action == state[:, :3].argmax(1)).float()
    value = critic(state).squeeze(1)
    advantage = reward - (value if "mistake" in sys.argv else value.detach())
    policy = -(scores.log_prob(action) * advantage).mean()  # <- here
    optimizer.zero_grad()
    (policy + (reward - value).square().mean()).backward()
    optimizer.step()
