# SPDX-License-Identifier: MIT
"""A policy gradient without its minus."""
import sys

import torch
import torch.nn.functional as F

MISTAKE = "mistake" in sys.argv
torch.manual_seed(0)
net = torch.nn.Linear(4, 3)
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(20):
    state = torch.randn(32, 4)
    policy = torch.distributions.Categorical(logits=net(state))
    action = policy.sample()
    reward = (state[:, 0].sign() * (action - 1)).float()
    gain = policy.log_prob(action) * (reward - reward.mean())  # <- here
    loss = gain.mean() if MISTAKE else -gain.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
