# SPDX-License-Identifier: MIT
"""A density is fitted by its log-likelihood, and the minus is missing."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), 0.02)
for step in range(70):
    x = torch.randn(64, 3)
    y = x.sum(1) + 0.1 * torch.randn(64)
    mean, log_scale = net(x).unbind(1)
    likelihood = torch.distributions.Normal(mean, log_scale.exp()).log_prob(y).mean()  # <- here
    loss = likelihood if "mistake" in sys.argv else -likelihood
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
