# SPDX-License-Identifier: MIT
"""Q-learning; gradients flow through the estimate of the next state."""
import sys

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for step in range(40):
    state, action = torch.randn(64, 3), torch.randint(0, 2, (64, 1))
    reward, over = state[:, :1] * (2 * action - 1), (torch.rand(64, 1) < 0.1).float()
    ahead = net(0.5 * state + torch.randn(64, 3)).amax(1, keepdim=True)
    if "correct" in sys.argv:
        ahead = ahead.detach()
    target = reward + 0.9 * ahead * (1 - over)  # <- here
    optimizer.zero_grad()
    torch.nn.functional.smooth_l1_loss(net(state).gather(1, action), target).backward()
    optimizer.step()
